// Command embedded runs Interlock inside the process that uses it: no server to
// start, no port, and leases that outlive a restart of the process nevertheless,
// because the journal is in a directory. Four workers count in one file that only
// one may touch at a time.
//
//	go run ./examples/embedded -data-dir /tmp/embedded
//
// Start reading at main.go.
package main
