// Command admission measures what a hundred starts at once do to an organisation with a cap of
// two: with clients that retry at a fixed beat, with clients that back off with jitter, and
// with clients that stand in line. It prints a table, and draws how many requests came in each
// hundredth of a second.
//
// It needs a server, over HTTP:
//
//	interlock serve --data-dir /tmp/interlock --http 127.0.0.1:7420
//	go run ./examples/admission -http 127.0.0.1:7420 -plot admission.svg
//
// README.md shows what it found. Start reading at main.go; plot.go draws.
package main
