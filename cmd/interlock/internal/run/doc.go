// Package run is the commands that last as long as a process: run, workflow start, pool join and
// agent wait.
//
// It must never let a command run on after its lease is lost, and never keep a lease after the
// command has ended.
//
// Start reading at run.go, then package job.
package run
