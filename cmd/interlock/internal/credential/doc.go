// Package credential is the command credential: it makes, lists and revokes credentials. They are
// lines of the server's file with the hashes of the secrets.
//
// It prints a credential once, and must never store one.
//
// Start reading at credential.go, then revoke.go.
package credential
