// Command clients compares the clients of Python and TypeScript with the locks that their programs take from Redis:
//
//	main.go    the flags, the services, the runs in turn
//	worker.go  a run: one process of a client under load, worker.py or worker.mjs
//	report.go  the medians, and the ratios of runs that were beside each other
//
// The services run for the whole measurement, each with its data in a temporary directory, and only one client
// loads them at a time. The tools that it needs are installed by the scripts of the repository: see "make clients".
//
// Command clients must never install anything, never leave a process behind, and never show a figure of Redis
// that does not sync before its answers.
//
// Start reading at main.go.
package main
