package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestSandboxScript(t *testing.T) {
	t.Parallel()
	tools.Need(t, "bwrap")
	runToolScript(newRig(t), "testdata/tools/sandbox.txt")
}

func TestChecksInSandbox(t *testing.T) {
	t.Parallel()
	tools.Need(t, "bwrap")
	runToolScript(newRig(t), "testdata/tools/checks.txt")
}

// A command in a sandbox has the terminal as any other: Ctrl-C ends it, Ctrl-Z stops it together with interlock until
// fg, and a shell inside has job control of its own.
func TestSandboxOnATerminal(t *testing.T) {
	t.Parallel()
	tools.Need(t, "bwrap", "bash")
	r := newRig(t)
	s := newScreen(t, r.env, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees("$ ")
	s.types("stty -echo; interlock() { " + launchtest.Binary(t) + " \"$@\"; }\n")
	s.sees("$ ")
	s.types("export INTERLOCK_WORKSPACES=" + t.TempDir() + "\n")
	s.sees("$ ")
	s.types("cd " + t.TempDir() + " && git init -q web && cd web && git -c user.name=A -c user.email=a@x commit -q " +
		"--allow-empty -m x; interlock workspace new a --kind worktree >/dev/null\n")
	s.sees("it was asked for")
	for _, mechanism := range []string{"bubblewrap", "namespaces"} {
		run := "interlock workspace run a --quiet --sandbox " + mechanism + " --net off -- "

		s.types(run + "sh -c 'read x; echo \"it read <$x>\"'; echo \"code <$?>\"\n")
		s.types("some words\n")
		s.sees("it read <some words>")
		s.sees("code <0>")

		s.types(run + "sh -c 'echo rea''dy; exec cat'; echo \"code <$?>\"\n")
		s.sees("ready")
		s.types(ctrlC)
		s.sees("code <130>")

		s.types(run + "sh -c 'echo rea''dy; exec cat'\n")
		s.sees("ready")
		s.types("first\n")
		s.sees("first")
		s.types(ctrlZ)
		s.sees("Stopped")
		s.types("fg\n")
		s.types("hello\n")
		s.sees("hello")
		s.types("\x04")
		s.types("echo \"code <$?>\"\n")
		s.sees("code <0>")

		s.types(run + "env PS1='ins''ide> ' bash --norc --noprofile --noediting -i\n")
		s.sees("inside> ")
		s.types("sh -c 'echo wait''ing; exec cat'\n")
		s.sees("waiting")
		s.types(ctrlZ)
		s.sees("Stopped")
		s.sees("inside> ")
		s.types("fg\n")
		s.types("back\n") // answered by cat when it has the terminal again
		s.sees("back")
		s.types(ctrlC)
		s.sees("inside> ")
		s.types("exit 3\n")
		s.types("echo \"code <$?>\"\n")
		s.sees("code <3>")
	}
}

func TestDatabaseScript(t *testing.T) {
	t.Parallel()
	tools.Need(t, "bwrap", "sqlite3", "psql")
	url := postgrestest.Start(t).URL(t)
	postgrestest.Execute(t, url, "CREATE TABLE account (id int); INSERT INTO account VALUES (1), (2)")
	r := newRig(t)
	r.env = append(r.env, "BANK="+url)
	runToolScript(r, "testdata/tools/database.txt")
}
