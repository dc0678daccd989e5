//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// witness is a pipe that each process of a command has: it ends when all of them have ended.
type witness struct {
	t    *testing.T
	path string
	read *bufio.Reader
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{t: t, path: filepath.Join(t.TempDir(), "witness")}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// shows is the beginning of a script: what it starts has the pipe.
func (w *witness) shows(text string) string { return "exec 9>" + w.path + "; echo " + text + " >&9;" }

// line waits until the command shows a line.
func (w *witness) line() string {
	w.t.Helper()
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(w.path) // it waits for the command
		opened <- f
	}()
	select {
	case f := <-opened:
		w.t.Cleanup(func() { f.Close() })
		w.read = bufio.NewReader(f)
	case <-busy.Context(w.t).Done():
		w.t.Fatal("the command does not begin")
	}
	text, err := w.read.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// gone waits until no process has the pipe any more.
func (w *witness) gone() {
	w.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, w.read)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			w.t.Fatal(err)
		}
	case <-busy.Context(w.t).Done():
		w.t.Fatal("processes of the command live on")
	}
}

// When interlock itself is killed nothing of its command lives on: not what a shell has started, not what ignores
// signals, not what is stopped, and not what the command has left behind.
func TestKilled(t *testing.T) {
	const ignores = "trap '' TERM INT HUP QUIT; "
	tests := map[string]struct {
		args   []string
		script string // SHOWS is where the witness gets its line
		tells  string
	}{
		"run a shell":      {script: "sleep 1000 & sh -c 'SHOWS exec sleep 1000'; true"},
		"run a pipeline":   {script: "SHOWS sleep 1000 | cat | cat"},
		"run what ignores": {script: ignores + "SHOWS sleep 1000 & sleep 1000"},
		"run what stops":   {script: "sleep 1000 & SHOWS kill -STOP 0"},
		"run what orphans": {script: "sh -c 'SHOWS sleep 1000 &'; exec sleep 1000"},
		"run what sleeps on": {
			args: []string{"run", "k", "--kill-after", "10m"}, script: ignores + "SHOWS sleep 1000 &",
			tells: "left processes behind",
		},
		"task work":  {args: []string{"task", "work", "q"}, script: ignores + "SHOWS sleep 1000"},
		"effect run": {args: []string{"effect", "run", "--tool", "t", "--target", "x"}, script: ignores + "SHOWS sleep 1000"},
		"pool join":  {args: []string{"pool", "join", "p", "--parts", "1"}, script: ignores + "SHOWS sleep 1000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must("queue", "set", "q")
			r.must("task", "create", "q", "{}")
			w := newWitness(t)
			args := tt.args
			if args == nil {
				args = []string{"run", "k"}
			}
			p := r.start(append(args, "--", "sh", "-c", strings.ReplaceAll(tt.script, "SHOWS", w.shows("ready")))...)
			w.line()
			if tt.tells != "" {
				p.expect(tt.tells)
			}
			p.signal(syscall.SIGKILL)
			w.gone()
			p.ends(cli.ExitSignal + int(syscall.SIGKILL))
		})
	}
}
