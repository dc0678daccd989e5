package main

import (
	"os"
	"strings"
	"testing"
)

// TestPages runs the commands that pages of the documentation show, in blocks of
// kind console, like a script of testdata, each page against a server of its own.
func TestPages(t *testing.T) {
	for _, page := range []string{"../../docs/patterns.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		script := consoleBlocks(string(text))
		if !strings.Contains(script, "\n$ ") {
			t.Errorf("%s has no commands", page)
		}
		runScript(t, page, script)
	}
}

// consoleBlocks leaves only the blocks of kind console, on the lines where they were.
func consoleBlocks(text string) string {
	var b strings.Builder
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside:
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
