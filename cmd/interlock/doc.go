// Command interlock is the whole of Interlock in one binary: the server, and the
// commands with which people and scripts use one.
//
// The server's commands (serve, admin, credential) work on this machine. All
// others talk to a running server: run over the session stream, with the Go
// client, because a lease must live exactly as long as its command; the rest over
// HTTP/JSON, with the small client in internal/cli/api.go.
//
//	main ─► root ─► topics ─► acquire, feed, view, job, link, datadir ─► cli
//
// Each topic is a package below internal, and imports none of another topic, except that message
// follows a message as task follows a task:
//
//	lease, run                                   one lease over HTTP; commands that last as long as a process
//	state, effect, file                          documents and commits, effects, shared files
//	task, queue, message, approval, account      what agents and people hand to each other
//	inspect                                      key, why and log
//	pattern, namespace, credential               what an operator sets
//	contexts                                     servers by name, in the configuration file
//	serve, guard, journal                        the server, the guards, the journal's tools
//	try                                          demos and benchmarks
//
// Below the topics is what several of them need:
//
//	acquire    the flags of a request for a lease, the line that shows a wait, tickets
//	feed       a stream of events, followed over broken connections
//	view       the resources of the HTTP API as the commands show them
//	job        a command that runs as long as a lease or an attempt
//	link       the session of this process with the server
//	datadir    entries and errors of the journal in a data directory
//	cli        the base: streams, formats, flags of the server, calls, exit codes, errors, hints, tables, texts
//
// It must never print a credential, never pass on text of other agents with its control
// characters, and never let a command run on after its lease is lost. Scripts may rely on
// the exit codes and the contents of standard output and standard error that cli describes.
//
// Start reading at main.go and root.go, then internal/cli, internal/run and internal/serve.
package main
