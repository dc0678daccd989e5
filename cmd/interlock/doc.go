// Command interlock is the whole of Interlock in one binary: the server, and the
// commands with which people and scripts use one.
//
// The server's commands (serve, journal, credential) work on this machine. All
// others talk to a running server: run over the session stream, with the Go
// client, because a lease must live exactly as long as its command; the rest over
// HTTP/JSON, with the small client in api.go.
//
//	main ─► root ─┬► serve                     filejournal, shard, server
//	              ├► run ─► job                the child, its group, its terminal
//	              ├► lock, renew, release      HTTP
//	              ├► ls, get, why, waits, hot  HTTP
//	              ├► events, revoke            HTTP
//	              └► journal, credential, demo, version
//
// It must never print a credential, never pass on text of other agents with its control
// characters, and never let a command run on after its lease is lost. Scripts may rely on
// exit.go (exit codes) and output.go (the contents of standard output and standard error).
//
// Start reading at main.go and root.go, then serve.go, then run.go and job.go.
package main
