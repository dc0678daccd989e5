//go:build !linux

package shard

// yield is for systems on which it is known what it is worth.
func yield() {}
