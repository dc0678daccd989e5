// Package contexts is the command context: it keeps the contexts of the configuration file.
//
// It must never write a credential to that file, and never call a server.
//
// Start reading at contexts.go.
package contexts
