package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// newRepository makes an empty bare repository.
func newRepository(t *testing.T) *Repository {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bare.git")
	if _, err := new(Repository).Output(t.Context(), "init", "--quiet", "--bare", "--end-of-options", dir); err != nil {
		t.Fatal(err)
	}
	return &Repository{Dir: dir}
}

// Nothing of the caller's environment reaches git, and nothing that the user or the repository configured for hooks,
// signing or merges.
func TestEnvironmentIsScrubbed(t *testing.T) {
	home := t.TempDir()
	hostile := "[user]\n\tname = mallory\n[merge]\n\tconflictStyle = zdiff3\n[core]\n\thooksPath = /tmp\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(hostile), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "TZ": "Asia/Tokyo",
		"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_CONFIG_PARAMETERS": "'merge.renames=false'",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "merge.renames", "GIT_CONFIG_VALUE_0": "false",
		"GIT_AUTHOR_NAME": "mallory", "GIT_TRACE": "1", "GIT_EXEC_PATH": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere",
		"GIT_REPLACE_REF_BASE": "refs/heads/",
	} {
		t.Setenv(name, value)
	}
	r := newRepository(t)
	for _, line := range []string{"merge.renames=false", "core.hooksPath=/tmp", "gc.auto=1"} {
		name, value, _ := strings.Cut(line, "=")
		if _, err := r.Output(t.Context(), "config", name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"merge.renames": "true", "merge.conflictStyle": "merge", "core.hooksPath": os.DevNull, "gc.auto": "0",
	} {
		if got, err := r.Output(t.Context(), "config", "--get", name); err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	result, err := r.Run(t.Context(), Call{Args: []string{"config", "--get", "user.name"}, Answers: []int{1}})
	if err != nil || result.Exit != 1 {
		t.Errorf("user.name is %q, %v, want none", result.Out, err)
	}
	got, err := r.Output(t.Context(), "var", "GIT_AUTHOR_IDENT")
	if err != nil || !strings.HasPrefix(got, "interlock <interlock@localhost> ") || !strings.HasSuffix(got, " +0000") {
		t.Errorf("the identity is %q, %v", got, err)
	}
	r.Config = []string{"merge.renames=copies"}
	if got, err := r.Output(t.Context(), "config", "--get", "merge.renames"); err != nil || got != "copies" {
		t.Errorf("with configuration of its own, merge.renames = %q, %v, want copies", got, err)
	}
}

// An exit code is an answer only if the call lists it. All else is an Error with the complaint of git.
func TestAnswersAndFailures(t *testing.T) {
	r := newRepository(t)
	missing := strings.Repeat("1", 40)
	for _, c := range []struct {
		args    []string
		answers []int
		exit    int
		failure int
		text    string
	}{
		{args: []string{"rev-parse", "--git-dir"}},
		{args: []string{"config", "--get", "no.such"}, answers: []int{1}, exit: 1},
		{args: []string{"config", "--get", "no.such"}, failure: 1},
		{args: []string{"cat-file", "-p", missing}, answers: []int{1}, failure: 128, text: "Not a valid object name"},
		{args: []string{"no-such-command"}, failure: 1, text: "is not a git command"},
	} {
		result, err := r.Run(t.Context(), Call{Args: c.args, Answers: c.answers})
		if c.failure == 0 {
			if err != nil || result.Exit != c.exit {
				t.Errorf("git %v: exit %d, %v, want exit %d", c.args, result.Exit, err, c.exit)
			}
			continue
		}
		failure, ok := errors.AsType[*Error](err)
		if !ok || failure.Exit != c.failure || failure.Command != c.args[0] || !failure.Mentions(c.text) {
			t.Errorf("git %v: %v, want a failure with exit %d and %q", c.args, err, c.failure, c.text)
		}
	}
}

func TestGitThatCannotStart(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := ReadVersion(t.Context())
	if failure, ok := errors.AsType[*Error](err); !ok || failure.Exit != -1 {
		t.Errorf("without git: %v, want an Error with exit -1", err)
	}
}

// The end of the context ends git and what it started, here a shell that holds the pipes open.
func TestContextEndsWhatGitStarted(t *testing.T) {
	r := newRepository(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, Call{Args: []string{"-c", "alias.wait=!echo begun; exec sleep 600", "wait"}, Out: in})
		ended <- err
	}()
	if _, err := io.ReadFull(out, make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want %v", err, context.Canceled)
		}
	case <-time.After(busy.Patience()):
		t.Error("git is still there 30 s after its context ended")
	}
}

func TestProcessAnswersSeveralRequests(t *testing.T) {
	r := newRepository(t)
	id, err := r.Feed(t.Context(), []byte("text\n"), "hash-object", "-w", "--stdin")
	if err != nil || CheckObject(id) != nil {
		t.Fatalf("hash-object: %q, %v", id, err)
	}
	p, err := r.Start(t.Context(), Call{Args: []string{"cat-file", "--batch-check"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		fmt.Fprintln(p.In, id)
		if line, err := p.Out.ReadString('\n'); err != nil || line != id+" blob 5\n" {
			t.Errorf("got %q, %v", line, err)
		}
	}
}

func TestProcessThatFailed(t *testing.T) {
	r := &Repository{Dir: t.TempDir()}
	p, err := r.Start(t.Context(), Call{Args: []string{"cat-file", "--batch"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Out.ReadString('\n')
	failure, ok := errors.AsType[*Error](p.Fail(err))
	if !ok || !failure.Mentions("not a git repository") {
		t.Errorf("got %v, want the complaint of git", failure)
	}
}

// A path that contains the separator of lists is the path of one object store.
func TestAlternates(t *testing.T) {
	source := newRepository(t)
	id, err := source.Feed(t.Context(), []byte("text\n"), "hash-object", "-w", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), `a:b "c`)
	if err := os.CopyFS(odd, os.DirFS(filepath.Join(source.Dir, "objects"))); err != nil {
		t.Fatal(err)
	}
	r := newRepository(t)
	r.Alternates = []string{odd}
	if text, err := r.Output(t.Context(), "cat-file", "blob", id); err != nil || text != "text" {
		t.Errorf("got %q, %v", text, err)
	}
}
