// Package frameworkpage reads docs/frameworks.md: which examples of examples/frameworks it shows, and what they print.
//
// The examples need frameworks that only "make doors" installs, so two packages run them: frameworktest those in
// Python, typescriptdoors those in TypeScript. The test of this package compares the code of the page with the files.
//
// Package frameworkpage must never be imported by anything but tests.
//
// Start reading at page.go.
package frameworkpage
