// Package settings changes the settings files of other programs as a careful person does: the
// comments, the order and the entries of others stay, a file is replaced as a whole or not at all,
// and its first state is kept, so that an undo returns its bytes.
//
// It must never write a file that it was not able to parse, follow a link out of a project, or write
// a credential.
//
// Start reading at file.go (files, undo), then document.go (JSON with comments) and text.go (a
// marked part of a text).
package settings
