package doorstest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
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
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	node := filepath.Join(tools.DoorsFolder(), "node")
	all, err := exec.CommandContext(ctx, node, filepath.Join(modules, "typescript/bin/tsc"), "-p", folder).CombinedOutput()
	return string(all), err
}

// awayScript edits a file twice while no server answers.
const awayScript = `
import { Interlock } from "./interlock.ts"

const hooks = await Interlock({ directory: "/w/web" })
for (const callID of ["1", "2"]) {
  try {
    await hooks["tool.execute.before"]({ tool: "edit", sessionID: "s", callID }, { args: { filePath: "a" } })
    console.log("edit", callID)
  } catch (refusal) {
    console.log("refused:", refusal.message)
  }
}
`

// With no server the plugin lets edits pass and reports it once. In strict mode it refuses them. Both name the server.
func TestOpenCodePluginWithoutServer(t *testing.T) {
	t.Parallel()
	tools.Need(t, tools.DoorsNode)
	source, err := os.ReadFile(plugin)
	if err != nil {
		t.Fatal(err)
	}
	const away = "the server at http://127.0.0.1:1 cannot be asked: "
	for _, tt := range []struct {
		mode string
		want []string // beginnings of lines
	}{
		{"", []string{"interlock: files are not reserved: " + away, "edit 1", "edit 2"}},
		{"strict", []string{"refused: The file cannot be reserved", "refused: The file cannot be reserved"}},
	} {
		const settings = "SETTINGS: string[][] = ["
		text := strings.Replace(string(source), settings, settings+`["mode","`+tt.mode+`"]`, 1)
		folder := t.TempDir()
		for name, content := range map[string]string{"interlock.ts": text, "away.mjs": awayScript, "package.json": "{}"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(tools.DoorsFolder(), "node"), "--no-warnings", "away.mjs")
		cmd.Dir, cmd.Env = folder, []string{"HOME=" + folder, "INTERLOCK_URL=http://127.0.0.1:1"}
		out, err := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		ok := err == nil && len(lines) == len(tt.want) && strings.Contains(string(out), away)
		for i := range lines {
			ok = ok && strings.HasPrefix(lines[i], tt.want[i])
		}
		if !ok {
			t.Errorf("mode %q: %v, want lines that begin with %q:\n%s", tt.mode, err, tt.want, out)
		}
	}
}
