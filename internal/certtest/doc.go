// Package certtest makes certificates for tests of what speaks TLS.
//
// It must never be imported by anything but tests.
//
// Start reading at certtest.go.
package certtest
