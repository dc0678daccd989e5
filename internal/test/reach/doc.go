// Command reach runs the tests that a change can break, and writes what "go test -json" writes.
//
//	go run ./internal/test/reach -- -short | go run ./internal/test/suite -short changed
//
// The change is what differs from the commit where this branch left main, committed or not. The command runs
//
//  1. the tests of registers.go, always: they compare what is kept in two places,
//  2. all tests of a package with a changed file,
//  3. in every other package, the tests that can reach a changed declaration or a changed file by the references
//     between declarations.
//
// It type-checks each package that the change reaches, so a package without tests is checked too.
//
// References are followed by type. What the types do not show is assumed: what mentions a type may call each of
// its methods that an interface or a template has by name; a test always reaches the initialisation of
// all packages that it imports; a text that is the path of a file, a folder or a command reaches it. What a test
// finds by other means (the network, the PATH, a name that it puts together) is not followed, and belongs into
// registers.go.
//
// The command must never keep quiet about a test that it selected and did not run. It starts no test once its
// time is over (-budget), and leaves out tests of unchanged packages that took long in the last run of the suite unit.
// It names both: they are left to "make test".
//
// Start reading at main.go. diff.go finds what changed, graph.go what refers to what, and choose.go
// the tests.
package main
