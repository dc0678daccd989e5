package guard_test

import (
	"os"
	"strings"
	"testing"
)

// block is a block of code of docs/guards.md, named by the text behind its beginning: "sql
// sqlite write". The test runs the block as it is shown.
func block(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/guards.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n```"+name+"\n")
	text, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatalf("docs/guards.md has no block %s", name)
	}
	return text
}

// with is a block in which something stands for something else, all of it.
func with(t *testing.T, text, old, replacement string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("docs/guards.md does not say %s in\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, replacement)
}
