package hookclient

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/hook/place"
)

func TestWhere(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	web := filepath.Join(top, "web")
	for _, dir := range []string{
		filepath.Join(web, ".git"), filepath.Join(web, "src"), filepath.Join(top, "a\nb", ".git"),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "HEAD"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	short := filepath.Join(top, "short")
	if err := os.Symlink(web, short); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(web)
	of := func(fields map[string]any) []byte {
		event, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return event
	}
	machine := Header{"X-Interlock-Host", host}
	can := Header{"X-Interlock-Places", "{}"}
	c, ok := place.Find(web)
	if !ok {
		t.Fatal("it is no repository")
	}
	root, repo := Header{"X-Interlock-Root", web}, Header{"X-Interlock-Repo", c.Repo}
	for _, tt := range []struct {
		name  string
		event []byte
		want  []Header
	}{
		{"a folder", of(map[string]any{"cwd": filepath.Join(web, "src")}), []Header{machine, can, root, repo}},
		{
			"a link", of(map[string]any{"cwd": filepath.Join(short, "src")}),
			[]Header{machine, can, root, {"X-Interlock-Root", short}, repo},
		},
		{"Cursor", of(map[string]any{"workspace_roots": []string{web}}), []Header{machine, can, root, repo}},
		{"outside", of(map[string]any{"cwd": top}), []Header{machine, can}},
		{"no folder", []byte("{"), []Header{machine, can, root, repo}},
		{"other types", []byte(`{"cwd": 1}`), []Header{machine, can, root, repo}},
		{"a second header", of(map[string]any{"cwd": filepath.Join(top, "a\nb")}), []Header{machine, can}},
	} {
		if got := Where(tt.event); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
