package frameworkpage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBlocks compares the code of the page with the examples. Each example is on the page.
func TestBlocks(t *testing.T) {
	shown := map[string]bool{}
	for _, b := range blocks(read(t)) {
		text, err := os.ReadFile(filepath.Join(Folder(), b.example))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains("\n"+string(text), "\n"+b.text) {
			t.Errorf("%s does not have what the page shows:\n%s", b.example, b.text)
		}
		shown[b.example] = true
	}
	examples, err := filepath.Glob(filepath.Join(Folder(), "race_*"))
	if err != nil || len(examples) < 10 {
		t.Fatalf("there are %d examples: %v", len(examples), err)
	}
	for _, example := range examples {
		if !shown[filepath.Base(example)] {
			t.Errorf("the page does not show %s", example)
		}
	}
}

func TestReadBlocks(t *testing.T) {
	page := "```sh\na\n```\n## One\n[x](../examples/frameworks/x.py)\n```python\nb\n\nc\n```\n```text\nd\n```\n" +
		"```ts\ne\n```\n## Two\n```python\nf\n```\n"
	want := []block{{"x.py", "python", "b\n\nc\n"}, {"x.py", "ts", "e\n"}}
	if got := blocks(page); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
