package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages runs what pages of the documentation show, each page against a server of
// its own: the commands in blocks of kind console like a script of testdata, the
// requests in blocks of kind http as exchanges.
func TestPages(t *testing.T) {
	for _, page := range []struct {
		file, kind string
		holds      string // is in every page of this kind
		run        func(t *testing.T, file, text string)
	}{
		{"../../docs/admission.md", "console", "\n$ ", runScript},
		{"../../docs/admission.md", "http", "\nPOST ", runExchanges},
		{"../../docs/files.md", "console", "\n$ ", runScript},
		{"../../docs/patterns.md", "console", "\n$ ", runScript},
		{"../../docs/signed-fences.md", "console", "\n$ ", runScript},
		{"../../docs/mailbox.md", "console", "\n$ ", runScript},
		{"../../docs/tasks.md", "console", "\n$ ", runScript},
		{"../../docs/http.md", "http", "\nPOST ", runExchanges},
	} {
		t.Run(filepath.Base(page.file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page.file)
			if err != nil {
				t.Fatal(err)
			}
			shown := blocks(string(text), page.kind)
			if !strings.Contains(shown, page.holds) {
				t.Errorf("%s shows nothing to run", page.file)
			}
			page.run(t, page.file, shown)
		})
	}
}

// blocks leaves only the blocks of a kind, on the lines where they were.
func blocks(text, kind string) string {
	var b strings.Builder
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```"+kind
		case inside:
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
