package typescripttest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// limit bounds a program; it is generous, because test machines are slow.
const limit = 10 * time.Minute

// source returns the folder of the client.
func source() string { return filepath.Join(tools.Root(), "clients/typescript") }

// Build compiles the client with its tests into folder/build.
func Build(t testing.TB, folder string) {
	t.Helper()
	stage(t, folder, source())
	compile(t, folder)
}

func compile(t testing.TB, folder string, more ...string) {
	t.Helper()
	args := append([]string{"-p", "tsconfig.test.json"}, more...)
	run(t, folder, filepath.Join(folder, "node_modules/.bin/tsc"), args...)
	modules(t, folder)
}

// modules marks the compiled tests as ES modules, which use the client as CommonJS.
func modules(t testing.TB, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "test/package.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "build/test/package.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stage copies the client from a folder into another one, with the packages that it is built with.
func stage(t testing.TB, folder, from string) {
	t.Helper()
	tools.Need(t, "node", tools.TypeScriptCompiler)
	if err := os.CopyFS(folder, packageFiles{os.DirFS(from)}); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(tools.TypeScriptFolder(), "node_modules")
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

// packageFiles are the files of the client without what a developer has built there.
type packageFiles struct{ fs.FS }

func (p packageFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(p.FS, name)
	var list []fs.DirEntry
	for _, e := range all {
		switch e.Name() {
		case "node_modules", "dist", "build":
		default:
			list = append(list, e)
		}
	}
	return list, err
}

// run runs a program in a folder, and returns what it printed.
func run(t testing.TB, folder, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}
