// Package cli is the base of all commands: the streams and the output format, the flags that select
// the server, the calls of the HTTP API, exit codes, the sentences of errors, tables, texts,
// durations and signals.
//
// It knows no command, and must never import a package of one. It must never print a credential,
// nor text of other agents with its control characters. Scripts may rely on exit.go (exit codes)
// and output.go (what goes to which stream).
//
// Start reading at app.go, then output.go, exit.go and api.go.
package cli
