// Package task is the command task: to submit tasks, to pull and work at them, and to look at them.
//
// A worker must never report a result of an attempt that is no longer its own.
//
// Start reading at task.go, then work.go and attempt.go.
package task
