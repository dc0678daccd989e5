// Package run is the commands that last as long as a process: run with its workflows, partition and
// wait-for.
//
// It must never let a command run on after its lease is lost, and never keep a lease after the
// command has ended.
//
// Start reading at run.go, then package job.
package run
