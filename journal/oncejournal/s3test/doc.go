// Package s3test tests package oncejournal over stores with the interface of S3, and what the server makes of it,
// against two independent implementations: one in memory, in this process, and one over a directory, in a process of
// its own that is killed. "make s3" runs it.
//
// It is a module of its own, because it links these: users of Interlock must never download them. It must never be
// imported.
//
// Start reading at store_test.go.
package s3test
