package remotetest

import "testing"

// Engine is a running engine in which tests keep journals.
type Engine interface {
	// Kind is that of interlock status.
	Kind() string

	// URL returns that of a journal, which is empty at first.
	URL(name string) string

	// Cable returns the URL of the same journal by way of a cable.
	Cable(t testing.TB, name string) (url string, cable Cable)
}
