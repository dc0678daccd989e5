// Package source reads the packages of this module for the generator, and collects the text of
// a generated Go file.
//
// A [Tree] type-checks a package from its source files: declarations only, no function bodies,
// and without the files that the generator has written. So a package can be read while its
// generated functions are stale or missing.
//
// This package must not know what is generated.
//
// Start reading at source.go.
package source
