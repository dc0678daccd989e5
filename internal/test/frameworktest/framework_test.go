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

// TestFrameworks carries out the cases with each framework. A proxy where nothing listens keeps it from the network.
func TestFrameworks(t *testing.T) {
	tools.Need(t, tools.PythonVenv, tools.Frameworks)
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
			test := "frameworks/test_" + strings.ReplaceAll(name, "-", "_") + ".py"
			cmd := exec.CommandContext(ctx, python, "-m", "pytest", "-p", "no:cacheprovider", "-q", test)
			cmd.Dir = client
			path := []string{filepath.Join(client, "src"), filepath.Join(client, "frameworks"), tools.PythonLib()}
			cmd.Env = append(
				os.Environ(), "PYTHONPATH="+strings.Join(path, ":"), "PYTHONDONTWRITEBYTECODE=1", "HOME="+t.TempDir(),
				"INTERLOCK_BINARY="+binary, "https_proxy=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
			)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "1 passed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
