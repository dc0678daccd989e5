package typescripttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme compares the example of the package with the one that docs/typescript.md runs.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(source(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(source(), "../../docs/typescript.md"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(readme)
	if example == nil || !strings.Contains(string(page), string(example[1])) {
		t.Errorf("docs/typescript.md does not have the example of the package:\n%s", readme)
	}
}
