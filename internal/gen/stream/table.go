package stream

// This file is all that the names of messages, fields and structs do not say.

// roots are the messages with a struct of the same name in package proto that the hand-written
// framing calls. What is in them follows.
var roots = []string{"GoAway"}

// paths are the places of fields with a different name in Go, by message and field.
var paths = map[string]string{}

// unsent are the fields of structs that their messages do not carry, and why.
var unsent = map[string]string{}

// fieldRule is what is special about one field.
type fieldRule struct {
	when    string // the condition to write it, if it is not that it has a value
	bound   string // of a list: its bound, if it is not MaxListed
	counted bool   // of a list: its decoder counts the elements first, and allocates once
	cloned  bool   // each element is decoded from a copy, so it does not keep the others
	flat    bool   // the elements must not have such a list of their own
	wraps   bool   // of 32 bits: what is above is cut off, and not the largest number
}

var fieldRules = map[string]fieldRule{}
