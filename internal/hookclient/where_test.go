package hookclient

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
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
	root, repo := Header{"X-Interlock-Root", web}, Header{"X-Interlock-Repo", "web"}
	for _, tt := range []struct {
		name  string
		event []byte
		want  []Header
	}{
		{"a folder", of(map[string]any{"cwd": filepath.Join(web, "src")}), []Header{machine, root, repo}},
		{
			"a link", of(map[string]any{"cwd": filepath.Join(short, "src")}),
			[]Header{machine, root, {"X-Interlock-Root", short}, repo},
		},
		{"Cursor", of(map[string]any{"workspace_roots": []string{web}}), []Header{machine, root, repo}},
		{"outside", of(map[string]any{"cwd": top}), []Header{machine}},
		{"no folder", []byte("{"), []Header{machine, root, repo}},
		{"other types", []byte(`{"cwd": 1}`), []Header{machine, root, repo}},
		{"a second header", of(map[string]any{"cwd": filepath.Join(top, "a\nb")}), []Header{machine}},
	} {
		if got := Where(tt.event); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
