// Package datadir is what serve, journal and migrate know of a data directory: it reads
// entries, and explains what is wrong with a directory or its disk, with the exit code.
//
// It must never write, and never pass over an entry that it cannot read.
//
// Start reading at datadir.go.
package datadir
