// Package typescripttest builds the client in clients/typescript and runs its tests on Node, against the real
// binary. Each of them is reported as a test of this package.
//
// scripts/typescript-tools.sh installs the compiler below dist.
//
// Package typescripttest must never be imported by anything but tests, and never pass when no test of the client ran.
//
// Start reading at build.go, then typescript_test.go.
package typescripttest
