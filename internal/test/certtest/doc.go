// Package certtest makes certificates for tests of TLS clients and servers.
//
// It must never be imported by anything but tests.
//
// Start reading at certtest.go.
package certtest
