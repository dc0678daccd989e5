// Package lease is the commands about one lease over HTTP: lock, unlock, lease, barrier and fence.
//
// A script that stands in line must leave it when it is interrupted. Commands that hold a lease as
// long as a process lives are in package run.
//
// Start reading at lock.go, then poll.go.
package lease
