// Package credential is the command credential: it makes a credential and adds its hash to the
// server's file.
//
// It prints a credential once, and must never store one.
//
// Start reading at credential.go.
package credential
