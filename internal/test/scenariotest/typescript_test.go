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
	"github.com/interlockdev/interlock/internal/test/typescripttest"
)

// typeScript is the folder of the runner in TypeScript, clients/typescript/test/scenario.ts, once it is built.
var typeScript string

func buildTypeScript(t *testing.T) {
	typeScript = t.TempDir()
	t.Run("build/typescript", func(t *testing.T) { typescripttest.Build(t, typeScript) })
}

func runTypeScript(ctx context.Context, t *testing.T, s *stage, file string) error {
	tools.Need(t, "node", tools.TypeScriptCompiler)
	x, err := readScenario(file)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(typeScript, "build/test/scenario.js"), file)
	cmd.Env = append(
		os.Environ(), "INTERLOCK_URL="+strings.Join(s.addrs(&x, s.http.addr), ","), "INTERLOCK_CONTROL="+s.control.URL,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
