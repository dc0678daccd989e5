package hookclient

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func fail(mode string) (report string, code int) {
	var b strings.Builder
	s := &Settings{Harness: "gemini", Mode: mode}
	code = s.Fail(&b, errors.New("no server\x1b[31m answers"))
	return b.String(), code
}

// A failure is open and reported once in ten minutes, unless the mode is strict.
func TestFail(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	for i, want := range []string{"files are not reserved: no server [31m answers (next message in 10 minutes", ""} {
		report, code := fail("guard")
		if !strings.Contains(report, want) || (want == "") != (report == "") || code != ExitOK {
			t.Errorf("failure %d: it wrote %q and returned %d", i, report, code)
		}
	}
	note := filepath.Join(cache, "interlock", "hook-failed")
	old := time.Now().Add(-quiet)
	if err := os.Chtimes(note, old, old); err != nil {
		t.Fatal(err)
	}
	if report, _ := fail(""); report == "" {
		t.Error("the next message never comes")
	}
	for range 2 {
		report, code := fail("strict")
		if !strings.Contains(report, "hooks are strict here") || strings.Contains(report, "\x1b") || code != ExitRefuse {
			t.Errorf("strict: it wrote %q and returned %d", report, code)
		}
	}
}

// Without a place for the note there is no message, and the file behind a link in its place stays.
func TestNote(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "relative")
	if report, code := fail("guard"); report != "" || code != ExitOK {
		t.Errorf("without a cache: it wrote %q and returned %d", report, code)
	}
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	mine := filepath.Join(cache, "mine")
	if err := os.WriteFile(mine, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(cache, "interlock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mine, filepath.Join(cache, "interlock", "hook-failed")); err != nil {
		t.Fatal(err)
	}
	if !due(time.Now().Add(time.Hour)) {
		t.Error("a link in place of the note hides the message")
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "kept" {
		t.Errorf("the file behind the link is %q (%v)", text, err)
	}
}

// A name is one segment of the path, whatever it has in it.
func TestPath(t *testing.T) {
	for _, name := range []string{"../keys", "a?b=c", "a b", "a\r\nX: y"} {
		s := &Settings{Harness: name, Mode: name}
		path := s.Path() + "?" + s.Query().Encode()
		if strings.Count(path, "/") != 3 || strings.Count(path, "?") != 1 || strings.ContainsAny(path, " \r\n") {
			t.Errorf("harness %q has the path %q", name, path)
		}
	}
}
