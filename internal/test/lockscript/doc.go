// Package lockscript writes scripts about locks in many spellings, for tests: random ones of a known meaning, and such
// with a change.
//
// It must never ask the parser under test what a script means: the meaning comes first, and its text is made from it.
// It must never be imported by anything but tests.
//
// Start reading at Write.
package lockscript
