// Package scratch makes temporary folders, and removes those of processes that were killed.
//
// A folder has a file that its process has locked. The operating system releases the lock when the process ends,
// whatever ends it. If the lock can be taken, no process uses the folder, and the next one that makes a folder for the
// same purpose removes it. On Windows nothing is locked, and left folders stay.
//
// Package scratch must never remove a folder that a living process uses, one of another user, or one without the lock
// file, and never follow a symbolic link.
//
// Start reading at scratch.go.
package scratch
