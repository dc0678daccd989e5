// Package file is the command file: shared files that only the holder of a lease may change.
//
// It must never write a file under an old fence: the guard refuses, and the command ends.
//
// Start reading at file.go.
package file
