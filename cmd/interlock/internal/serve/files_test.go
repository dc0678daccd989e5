package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The journal and the keys that sign fences are not served as files.
func TestFilesAreNotTheDataDirectory(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"site/data/sub", "site/shared", "site/data2"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("site/data", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(root, "site/data")
	for _, tt := range []struct {
		files, data string
		refused     bool
	}{
		{"site/shared", data, false},
		{"site/data2", data, false},
		{"site/data", data, true},
		{"site", data, true},
		{"site/data/sub", data, true},
		{"site/shared/../data", data, true},
		{"link", data, true},
		{"link/sub", data, true},
		{"site/data", filepath.Join(root, "link"), true},
		{"site/shared", filepath.Join(root, "site/shared/new/data"), true}, // which is not there yet
		{"site/data", filepath.Join(root, "link/new"), true},
		{"site/shared", filepath.Join(root, "link/new"), false},
	} {
		dirs, err := openFiles([]string{"acme=" + filepath.Join(root, tt.files)}, tt.data)
		if refused := err != nil && strings.Contains(err.Error(), "would read and write the data directory"); refused != tt.refused {
			t.Errorf("%s with %s: %v", tt.files, tt.data, err)
		}
		for _, d := range dirs {
			d.Close()
		}
	}
}
