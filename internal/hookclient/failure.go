package hookclient

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/interlockdev/interlock/internal/invisible"
)

// quiet is for how long one message about a failure is enough.
const quiet = 10 * time.Minute

// Exit codes of a hook.
const (
	ExitOK = 0
	// ExitRefuse, with the reason on standard error, is a refusal to every harness.
	ExitRefuse = 2
)

// Fail ends a run that has no answer of a server, and returns its exit code: open, unless the mode is
// strict.
func (s *Settings) Fail(report io.Writer, err error) int {
	text := line(err.Error())
	if s.Mode == "strict" {
		fmt.Fprintf(
			report,
			"interlock: the file cannot be reserved, and hooks are strict here, so do not change it by another way. %s. "+
				"A person can repair it: interlock hooks doctor\n",
			text,
		)
		return ExitRefuse
	}
	if due(time.Now()) {
		fmt.Fprintf(
			report,
			"interlock-hook: files are not reserved: %s (next message in %d minutes; interlock hooks doctor tests it)\n",
			text,
			int(quiet.Minutes()),
		)
	}
	return ExitOK
}

// due reports whether a message is due, and notes that it was written. Without a place for the
// note none is: a line at every edit would hide the agent's own.
func due(now time.Time) bool {
	dir, err := os.UserCacheDir()
	if err != nil {
		return false
	}
	note := filepath.Join(dir, "interlock", "hook-failed")
	if info, err := os.Lstat(note); err == nil && now.Sub(info.ModTime()).Abs() < quiet {
		return false
	}
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		return false
	}
	_ = os.Remove(note) // a new file has the present time
	file, err := os.OpenFile(note, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// line makes text of a server, or of the environment, safe for a terminal, on one line.
func line(s string) string { return invisible.Clip(invisible.Line(s), 400) }
