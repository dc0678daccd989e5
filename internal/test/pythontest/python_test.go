package pythontest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/clientworld"
	"github.com/interlockdev/interlock/internal/test/frameworkpage"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// limit bounds a program; it is generous, because test machines are slow.
const limit = 60 * time.Minute

func folder() string { return filepath.Join(tools.Root(), "clients/python") }

// command is a program in the folder of the client that uses its source.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder()
	cmd.Env = append(
		os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+tools.Overlaid(t, "clients/python/src")+":"+tools.PythonLib(),
		"NO_COLOR=1", "HOME="+t.TempDir(),
	)
	return cmd
}

// The types of the package, of its tests and of its runners are complete and right, as two checkers see them.
func TestTypes(t *testing.T) {
	tools.Need(t, tools.PythonVenv, "node")
	python := filepath.Join(tools.Root(), tools.PythonVenv)
	for name, args := range map[string][]string{
		"mypy": {python, "-m", "mypy", "--strict", "--python-version", "3.10", "--cache-dir", t.TempDir()},
		"pyright": {
			"node", tools.Pyright(), "--pythonversion", "3.10",
			"--pythonpath", python,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, args[0], append(args[1:], "src", "tests")...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The source is formatted, and ruff has no findings, also in the examples. The files that are generated are left out.
func TestFormat(t *testing.T) {
	tools.Need(t, tools.PythonVenv)
	for _, args := range [][]string{{"format", "--check"}, {"check"}} {
		args = append([]string{"-m", "ruff"}, append(args, "--no-cache", "--config", "pyproject.toml", ".", frameworkpage.Folder())...)
		cmd := command(t, filepath.Join(tools.Root(), tools.PythonVenv), args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// TestPytest runs the tests of the client on every interpreter.
func TestPytest(t *testing.T) {
	tools.Need(t, tools.PythonVenv, "openssl")
	pythons, err := tools.Pythons()
	if err != nil {
		t.Fatal(err)
	}
	binary, world := launchtest.Binary(t), "INTERLOCK_TEST_WORLD="+clientworld.Program(t)
	for _, python := range pythons {
		t.Run(python.Version, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, python.Path, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rN", "tests")
			cmd.Env = append(cmd.Env, "INTERLOCK_BINARY="+binary, world)
			if passed := Report(t, cmd); passed < 20 {
				t.Errorf("only %d tests passed", passed)
			}
		})
	}
	t.Logf("pytest ran on %v", pythons)
}

// TestReadme compares the example of the package with the one that docs/python.md runs.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(folder(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(tools.Root(), "docs/python.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```python\n")
	example, _, _ = strings.Cut(example, "```")
	if example == "" || !strings.Contains(string(page), example) {
		t.Errorf("docs/python.md does not have the example of the package:\n%s", example)
	}
}
