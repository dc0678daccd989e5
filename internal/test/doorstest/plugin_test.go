package doorstest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

const plugin = "../../../cmd/interlock/internal/hooks/plugin/interlock.ts"

// The plugin for OpenCode has the types of a plugin in the version of the lock file, and a mistake in it is found.
func TestOpenCodePlugin(t *testing.T) {
	t.Parallel()
	tools.Need(t, tools.DoorsNode)
	source, err := os.ReadFile(plugin)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, changed, want string }{
		{name: "as it is"},
		{"unknown hook", `"tool.execute.after":`, `"tool.execute.later":`, "check.ts"},
		{"other input", "input: { sessionID: string }", "input: { sessionID: number }", "check.ts"},
		{"other field", "answer.reason", "answer.reasons", "interlock.ts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(string(source), tt.old, tt.changed, 1)
			if (text == string(source)) != (tt.old == tt.changed) {
				t.Fatalf("the plugin has no %q", tt.old)
			}
			out, err := checkTypes(t, text)
			if (err != nil) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("the compiler ended with %v, want a finding in %q:\n%s", err, tt.want, out)
			}
		})
	}
}

// checkTypes has TypeScript check a plugin.
func checkTypes(t *testing.T, source string) (out string, err error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/opencode")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "interlock.ts"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(tools.DoorsFolder(), "node_modules")
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	node := filepath.Join(tools.DoorsFolder(), "node")
	all, err := exec.CommandContext(ctx, node, filepath.Join(modules, "typescript/bin/tsc"), "-p", folder).CombinedOutput()
	return string(all), err
}
