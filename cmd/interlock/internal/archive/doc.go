// Package archive answers requests from the journal in a directory, without a server.
//
// It must never change a journal.
//
// Start reading at archive.go.
package archive
