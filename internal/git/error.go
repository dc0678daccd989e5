package git

import (
	"fmt"
	"strings"
)

// Error is a git that failed: it could not be started, was killed, or exited with a code that its caller did not
// list as an answer. It never stands for a conflict.
type Error struct {
	// Command is the git command, such as "merge-tree".
	Command string
	// Exit is the exit code, and -1 if git was not started or was killed by a signal.
	Exit int
	// Stderr is what git wrote to its standard error, without the last newline.
	Stderr string
	// Err is the error of the operating system.
	Err error
}

// Error names the command, and the last line of git's own complaint.
func (e *Error) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("git %s failed: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("git %s failed (%v): %s", e.Command, e.Err, strings.ReplaceAll(e.Stderr, "\n", "; "))
}

// Unwrap returns the error of the operating system.
func (e *Error) Unwrap() error { return e.Err }

// DiskFull reports whether git had no room to write.
func (e *Error) DiskFull() bool {
	return e.Mentions("No space left on device") || e.Mentions("Out of diskspace")
}

// Machine reports whether git complains about the machine, and not about what it read.
func (e *Error) Machine() bool {
	for _, text := range []string{
		"No space left on device", "Out of diskspace", "Disk quota exceeded", "Read-only file system", "Input/output error",
		"Permission denied", "Cannot allocate memory", "Out of memory", "out of memory", "Too many open files",
		"unable to create thread", "Resource temporarily unavailable", "unable to create temporary file",
		"not a git repository",
	} {
		if e.Mentions(text) {
			return true
		}
	}
	return false
}

// Mentions reports whether git's complaint contains the text. Git writes it in English, as the locale is pinned.
func (e *Error) Mentions(text string) bool { return strings.Contains(e.Stderr, text) }
