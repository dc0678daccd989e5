package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// Rounds of nights add up, and a round with a failure is not recorded.
func TestNightAddsUp(t *testing.T) {
	n := &night{}
	round := []suite{
		{Suite: "simulation", Passed: 7, Seconds: 90, Counts: map[string]int64{"seeds": 150}},
		{Suite: "crash", Passed: 2, Seconds: 10, Counts: map[string]int64{"history_operations": 9}},
	}
	for range 2 {
		if err := n.add(round, "c0ffee", "2026-11-28"); err != nil {
			t.Fatal(err)
		}
	}
	if n.Rounds != 2 || n.Seconds != 200 || n.Tests != 18 || n.Counts["seeds"] != 300 {
		t.Errorf("two rounds make %+v", n)
	}
	round[1].Failed = 1
	if err := n.add(round, "c0ffee", "2026-11-28"); err == nil || n.Rounds != 2 {
		t.Errorf("a round with a failure: %v, %+v", err, n)
	}
	r := &record{Night: n}
	if got := r.table(); !strings.Contains(got, "in 2 rounds") || !strings.Contains(got, "300 further") {
		t.Errorf("the table does not have the nights:\n%s", got)
	}
}

// A record is refused when it is more than 300 commits old, or of a commit outside the history.
func TestAge(t *testing.T) {
	tools.Need(t, "git")
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(reliability, mistakes string) {
		t.Helper()
		for name, v := range map[string]any{
			"r.json": record{Commit: reliability}, "m.json": seededResult{Found: 1, Total: 1, Commit: mistakes},
		} {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(want ...string) {
		t.Helper()
		var out strings.Builder
		got := fmt.Sprint(age(&out, "r.json", "m.json"))
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("age: %s, want %q", got, w)
			}
		}
		if len(want) == 0 && got != "<nil>" {
			t.Errorf("age: %s", got)
		}
	}
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "one")
	first := git("rev-parse", "HEAD")
	write(first, first[:12])
	check()
	for range mostCommits {
		git("commit", "-q", "--allow-empty", "-m", "more")
	}
	check()
	git("commit", "-q", "--allow-empty", "-m", "too many")
	check("r.json", "301 commits ago", "run make reliability", "m.json", "run make seeded")
	head := git("rev-parse", "HEAD")
	write(head, head)
	check()
	git("checkout", "-q", "--detach", first)
	check("r.json", "not in the history")
	write("0000000000000000000000000000000000000000", first)
	check("r.json", "not in the history")
}
