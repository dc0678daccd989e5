package scenariotest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// runPython runs a runner of the client for Python on the newest interpreter.
func runPython(runner string) func(context.Context, *testing.T, *stage, string) error {
	return func(ctx context.Context, t *testing.T, s *stage, file string) error {
		tools.Need(t, tools.PythonVenv)
		pythons, err := tools.Pythons()
		if err != nil {
			return err
		}
		folder := filepath.Join(tools.Root(), "clients/python")
		return s.program(ctx, file, []string{
			"PYTHONPATH=" + filepath.Join(folder, "src"), "PYTHONDONTWRITEBYTECODE=1",
		}, pythons[len(pythons)-1].Path, "-W", "error", filepath.Join(folder, "tests", runner))
	}
}

// program runs a runner that is a process of its own.
func (s *stage) program(ctx context.Context, file string, env []string, name string, args ...string) error {
	x, err := readScenario(file)
	if err != nil {
		return err
	}
	urls := s.addrs(&x, s.http.addr)
	for i := range urls {
		urls[i] = "http://" + urls[i]
	}
	cmd := exec.CommandContext(ctx, name, append(args, file)...)
	cmd.Env = append(
		append(os.Environ(), env...), "INTERLOCK_URL="+strings.Join(urls, ","), "INTERLOCK_CONTROL="+s.control.URL,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
