// Package state is the commands state and commit: documents at keys, their history, and atomic
// writes of several.
//
// It must never replace a document unless the caller has named its version.
//
// Start reading at commit.go, then state.go.
package state
