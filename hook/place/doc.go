// Package place knows the checkout of a repository that a path lies in, and where a path leads when all
// links are followed.
//
// It reads the file system only: it starts no git process, so that a hook costs microseconds. It imports the standard
// library alone, since a binary of a few megabytes uses it. It must never decide what is a valid key: see
// package hook.
//
// Start reading at place.go.
package place
