// Package lockmode has the rules about lock modes: which exclude each other, which covers
// which, and which intent a claim needs on the ancestors of its key. The modes themselves are
// those of package interlock.
//
// The package must never know a request or a key: its functions depend on modes alone.
//
// Start reading at Conflicts in lockmode.go.
package lockmode
