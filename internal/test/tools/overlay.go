package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Overlaid returns a folder of the repository as the overlay in GOFLAGS has it: a copy with the replaced files, or the
// folder itself if none of its files is replaced. So a seeded mistake reaches programs that Go does not build.
func Overlaid(t testing.TB, folder string) string {
	t.Helper()
	folder = filepath.Join(Root(), folder)
	var overlay struct{ Replace map[string]string }
	for flag := range strings.FieldsSeq(os.Getenv("GOFLAGS")) {
		name, ok := strings.CutPrefix(flag, "-overlay=")
		if !ok {
			continue
		}
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &overlay)
		}
		if err != nil {
			t.Fatalf("the overlay of GOFLAGS: %v", err)
		}
	}
	copied := ""
	for file, by := range overlay.Replace {
		inside, err := filepath.Rel(folder, file)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		if copied == "" {
			copied = t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, inside), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if copied != "" {
		return copied
	}
	return folder
}
