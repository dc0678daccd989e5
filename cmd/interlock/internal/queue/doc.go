// Package queue is the command queue: the queues of tasks and their limits.
//
// A change must never reset a setting that it does not name.
//
// Start reading at queue.go.
package queue
