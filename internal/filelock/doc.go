// Package filelock locks a file for one process: flock on Unix, LockFileEx on Windows.
//
// The lock belongs to the open file. The operating system releases it when the file is closed or the process ends,
// whatever kills that, so no lock is ever left behind.
//
// Package filelock must never write to the file, and never remove it: a name that is removed can be locked twice.
//
// Start reading at filelock_unix.go.
package filelock
