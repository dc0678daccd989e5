package hooks

import (
	"bytes"
	"path/filepath"
	"testing"
)

// Gemini CLI goes by the longest path of its list that a folder is below.
func TestTrustOf(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	list := []byte(`{"TOP": "TRUST_FOLDER", "TOP/web/x": "TRUST_PARENT", "TOP/lib": "DO_NOT_TRUST"}`)
	list = bytes.ReplaceAll(list, []byte("TOP"), []byte(top))
	for folder, want := range map[string]string{
		"/web": "TRUST_PARENT", "/web/src": "TRUST_PARENT", "/lib/a": "DO_NOT_TRUST", "/libs": "TRUST_FOLDER", "/..": "",
	} {
		if got := trustOf(list, filepath.Join(top, folder)); got != want {
			t.Errorf("%s is %q, want %q", folder, got, want)
		}
	}
	for _, text := range []string{"", "{", "[1]"} {
		if got := trustOf([]byte(text), top); got != "" {
			t.Errorf("with the list %q it is %q", text, got)
		}
	}
}
