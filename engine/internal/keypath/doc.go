// Package keypath has the rules about the texts of keys: which text is a key, how keys lie below
// and beside each other, how the shape of a pattern matches them, and which keys are spelled
// almost alike.
//
// All functions are pure: they depend on their arguments alone. The package must never know a
// request, a namespace's settings or what is stored at a key.
//
// Start reading at Parse in keypath.go; shape.go has patterns and spelling.go near misses.
package keypath
