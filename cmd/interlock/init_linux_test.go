package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// On a terminal init shows the changes and asks. Only a yes writes.
func TestInitAsks(t *testing.T) {
	tools.Need(t, "bash")
	dir := t.TempDir()
	config := "INTERLOCK_CONFIG=" + filepath.Join(dir, "config.json")
	s := newScreen(
		t, append(cleanEnvironment(), config, "HOME="+dir), "bash", "--norc", "--noprofile", "--noediting", "-i",
	)
	s.sees("$ ")
	s.types("stty -echo; cd " + dir + "\n")
	s.sees("$ ")
	ask := launchtest.Binary(t) + " init --harness cursor --skip hooks\n"
	for _, answer := range []string{"\n", "n\n"} {
		s.types(ask)
		s.sees("+      \"command\": \"interlock\"")
		s.sees("Write 2 files? [y/N]")
		s.types(answer)
		s.sees("nothing was written")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("without a yes there is %q", left)
	}
	s.types(ask)
	s.sees("[y/N]")
	s.types("y\n")
	s.sees("created: AGENTS.md")
	if _, err := os.Stat(filepath.Join(dir, ".cursor", "mcp.json")); err != nil {
		t.Error(err)
	}
}
