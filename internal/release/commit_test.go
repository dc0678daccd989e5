package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestDescribe(t *testing.T) {
	tools.Need(t, "git")
	t.Setenv("GIT_COMMITTER_DATE", "2026-11-25T10:20:30Z")
	dir := t.TempDir()
	at := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if err := do(dir, nil, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	want := func(asked, want, wrong string) {
		t.Helper()
		r, err := describe(dir, asked)
		switch {
		case wrong != "":
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Fatalf("error %v, want %s", err, wrong)
			}
		case err != nil:
			t.Fatal(err)
		case strings.ReplaceAll(r.version, r.commit[:12], "COMMIT") != want || r.time.Unix() != 1795602030:
			t.Fatalf("version %s at %d, want %s", r.version, r.time.Unix(), want)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at("init", "-q")
	write("a")
	at("add", ".")
	at("commit", "-qm", "one")
	want("", "v0.0.0-20261125102030-COMMIT", "")
	at("tag", "other")
	at("tag", "v0.2.0")
	at("tag", "v0.10.0")
	want("", "v0.10.0", "")
	want("v0.2.1-rc.1", "v0.2.1-rc.1", "")
	want("0.2.1", "", "want one such as v0.2.0")
	write("b")
	want("", "", "changes that are not in v0.10.0")
	at("commit", "-qam", "two")
	write("c")
	want("", "v0.0.0-20261125102030-COMMIT.dirty", "")
}
