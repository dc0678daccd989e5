// Package loopback decides which hosts are this machine alone. The rule is the same where a server listens without
// credentials, for the Host headers of browsers, for addresses that need no TLS, and for ways out of a sandbox.
//
// It must never resolve a name: the answer could change until the name is used.
//
// Start reading at loopback.go.
package loopback
