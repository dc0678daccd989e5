package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// Each row of the table has a level for each mechanism, and a note where it is not plain.
func TestTable(t *testing.T) {
	levels := map[sandbox.Level]bool{sandbox.Yes: true, sandbox.No: true, sandbox.Part: true}
	seen := map[string]bool{}
	for _, r := range sandbox.Table {
		if seen[r.Subject] || !levels[r.Bubblewrap] || !levels[r.Namespaces] || !levels[r.Without] {
			t.Errorf("row %+v", r)
		}
		if (r.Bubblewrap != sandbox.Yes || r.Namespaces != sandbox.Yes) && r.Note == "" {
			t.Errorf("%s: no note why it is not enforced", r.Subject)
		}
		seen[r.Subject] = true
	}
}

// The page shows the table as it is here.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tools.Root(), "docs/sandbox.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := sandbox.Markdown(); !strings.Contains(string(text), want) {
		t.Errorf("docs/sandbox.md does not have this table:\n%s", want)
	}
}
