//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/forgetest"
)

// TestScripts runs the scripts of testdata as a person would type them, in order,
// each script against a server of its own (unless its first line is "# no server").
// A script reads like this:
//
//	# What it shows.
//	$ interlock lock account:1
//	export INTERLOCK_LEASE=l_*
//	...
//	[exit 75]
//
// Lines behind a command are what it writes to both outputs. In them, * stands for anything within
// a line, a line of three dots for any number of lines, and a run of spaces for another one. A
// command ends with exit code 0 unless there is an [exit N]. Variables that a command exports are
// there for the next ones.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runScript(t, file, string(text))
		})
	}
}

// step is one command of a script.
type step struct {
	line    int
	command string
	want    []string
	code    int
}

var exitLine = regexp.MustCompile(`^\[exit (\d+)\]$`)

func parseScript(text string) (steps []step) {
	for i, line := range strings.Split(text, "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{line: i + 1, command: command})
			continue
		}
		if len(steps) == 0 || line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		last := &steps[len(steps)-1]
		if m := exitLine.FindStringSubmatch(line); m != nil {
			last.code, _ = strconv.Atoi(m[1])
			continue
		}
		last.want = append(last.want, line)
	}
	return steps
}

func runScript(t *testing.T, file, text string) {
	if strings.HasPrefix(text, "# no server\n") {
		play(t, cleanEnvironment(), file, text)
		return
	}
	r := newRig(t)
	if strings.Contains(text, "$FORGE") {
		r.startForge()
	}
	r.runScript(file, text)
}

// startForge starts a forge with the repository FORGE, the API FORGE_API and the token FORGE_TOKEN.
func (r *rig) startForge() {
	from := r.t.TempDir()
	forgetest.Repository(r.t, from)
	f := forgetest.New(r.t, from)
	r.env = append(r.env, "FORGE="+f.Dir, "FORGE_API="+f.URLOf("github"), "FORGE_TOKEN="+forgetest.Token)
}

// runScript runs a script against the rig's server.
func (r *rig) runScript(file, text string) { play(r.t, append(r.env, "DATA="+r.dir), file, text) }

// play runs a script in a shell of its own.
func play(t *testing.T, env []string, file, text string) {
	t.Helper()
	newShell(t, env).play(file, text)
}

func (s *shell) play(file, text string) {
	t := s.t
	t.Helper()
	for _, step := range parseScript(text) {
		out, code := s.run(step.command)
		got := dropEmpty(strings.Split(out, "\n"))
		if code != step.code {
			t.Errorf("%s:%d: $ %s\nexit code %d, want %d; it wrote:\n%s", file, step.line, step.command, code, step.code, out)
		} else if !matchLines(step.want, got) {
			t.Errorf("%s:%d: $ %s\nwrote:\n%s\nwant:\n%s", file, step.line, step.command, out, strings.Join(step.want, "\n"))
		}
		if t.Failed() {
			return // what follows builds on it
		}
	}
}

// dropEmpty leaves out empty lines, which a script uses for itself.
func dropEmpty(lines []string) (kept []string) {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			kept = append(kept, line)
		}
	}
	return kept
}

// matchLines compares what a command wrote with what a script wants.
func matchLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matchLines(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchLine(want[0], got[0]) && matchLines(want[1:], got[1:])
}

var spaces = regexp.MustCompile(`\s+`)

func matchLine(want, got string) bool {
	want, got = spaces.ReplaceAllString(strings.TrimSpace(want), " "), spaces.ReplaceAllString(strings.TrimSpace(got), " ")
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, ".*") + "$"
	return regexp.MustCompile(pattern).MatchString(got)
}

func TestMatchLines(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		match     bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a  b", "a b", true},
		{"a*c", "abc", true},
		{"a*c", "abd", false},
		{"a\n...\nd", "a\nb\nc\nd", true},
		{"a\n...", "a", true},
		{"...", "", true},
		{"a", "a\nb", false},
		{"a.c", "abc", false},
	} {
		lines := func(s string) []string { return dropEmpty(strings.Split(s, "\n")) }
		if matchLines(lines(tt.want), lines(tt.got)) != tt.match {
			t.Errorf("want %q, got %q: match is not %v", tt.want, tt.got, tt.match)
		}
	}
}
