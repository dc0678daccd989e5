package account

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"
)

// The guide explains every code, and no other.
func TestGuideExplainsCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/account.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := bytes.Cut(text, []byte("| code | the command |\n"))
	table, _, _ = bytes.Cut(table, []byte("\n\n"))
	var explained []Code
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllSubmatch(table, -1) {
		explained = append(explained, Code(m[1]))
	}
	for _, code := range codes {
		if !slices.Contains(explained, code) {
			t.Errorf("docs/account.md does not explain %s", code)
		}
	}
	if len(explained) != len(codes) {
		t.Errorf("docs/account.md explains %d codes, of %d", len(explained), len(codes))
	}
}
