package clientworld

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// Program builds the server for the tests of a client, and returns its file.
func Program(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clientworld.test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", file, "./internal/test/clientworld"}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = tools.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return file
}
