package frameworktest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// limit bounds the test of a framework; it is generous, because test machines are slow.
const limit = 3 * time.Minute

// TestFrameworks carries out the cases with each framework, and checks that the types of its extra are complete. A
// proxy where nothing listens keeps it from the network.
func TestFrameworks(t *testing.T) {
	tools.Need(t, tools.PythonVenv, tools.Frameworks, "node")
	locks, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(locks) < 5 {
		t.Fatalf("%d frameworks, %v", len(locks), err)
	}
	binary, client := launchtest.Binary(t), filepath.Join(tools.Root(), "clients/python")
	for _, lock := range locks {
		name := strings.TrimSuffix(filepath.Base(lock), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			python := filepath.Join(tools.Root(), filepath.Dir(tools.Frameworks), name, "bin/python")
			module := strings.ReplaceAll(name, "-", "_")
			path := []string{filepath.Join(client, "src"), filepath.Join(client, "frameworks"), tools.PythonLib()}
			env := append(
				os.Environ(), "PYTHONPATH="+strings.Join(path, ":"), "PYTHONDONTWRITEBYTECODE=1", "HOME="+t.TempDir(),
				"INTERLOCK_BINARY="+binary, "https_proxy=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
				tools.PathOf(python),
			)
			test := exec.CommandContext(
				ctx, python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "frameworks/test_"+module+".py",
			)
			types := exec.CommandContext(
				ctx, "node", tools.Pyright(), "--verifytypes", "interlock.ext."+module, "--ignoreexternal",
			)
			for want, cmd := range map[string]*exec.Cmd{"1 passed": test, "completeness score: 100%": types} {
				cmd.Dir, cmd.Env = client, env
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%v: %v\n%s", cmd.Args, err, out)
				}
			}
		})
	}
}
