// Package memory has the tests of a package work in folders in memory. Tests that start hundreds of git processes make
// and remove thousands of small files, and spend half of their time in the file system of a disk.
//
// It must never be used by tests that need a disk, such as those of a journal, nor by tests with a sandbox, which has
// its own /dev. It must never be imported by anything but tests.
//
// Start reading at memory.go.
package memory
