// Package pattern is the command pattern: the rules of an operator for keys of one shape, and their
// revisions.
//
// A change without a shape must never reset what it does not name.
//
// Start reading at pattern.go, then policy.go.
package pattern
