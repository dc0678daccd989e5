package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestOverlaid(t *testing.T) {
	const folder = "internal/test/tools"
	original := filepath.Join(Root(), folder)
	t.Setenv("GOFLAGS", "-trimpath")
	if got := Overlaid(t, folder); got != original {
		t.Errorf("without an overlay: %s, want %s", got, original)
	}
	by, list := filepath.Join(t.TempDir(), "by"), filepath.Join(t.TempDir(), "overlay.json")
	text := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(original, "overlay.go"), by)
	for name, text := range map[string]string{by: "mistaken", list: text} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-trimpath -overlay="+list)
	got := Overlaid(t, folder)
	for file, want := range map[string]string{"overlay.go": "mistaken", "overlay_test.go": ""} {
		b, err := os.ReadFile(filepath.Join(got, file))
		if err != nil || want != "" && string(b) != want {
			t.Errorf("%s is %.20q, %v", file, b, err)
		}
	}
	if got := Overlaid(t, "sim/seeded"); got != filepath.Join(Root(), "sim/seeded") {
		t.Errorf("a folder without the file: %s", got)
	}
}
