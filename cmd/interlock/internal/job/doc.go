// Package job runs a command for as long as a lease or an attempt lasts: its process group, its
// terminal, its signals, its output, and its end.
//
// It must never let a process of the group run on after the lease is lost, or after this process was killed.
//
// Start reading at job.go: it has the policy, and job_unix.go and job_windows.go the means of the system. On Unix each
// command has a watcher, in watcher_unix.go.
package job
