package launchtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
)

// startTimeout bounds a start; it is generous, because test machines are slow.
const startTimeout = time.Minute

// built is the binary, once a test has asked for it.
var built struct {
	once sync.Once
	path string
	err  error
}

func build() {
	dir, err := os.MkdirTemp("", "interlock-binary-")
	if err != nil {
		built.err = err
		return
	}
	built.path = filepath.Join(dir, "interlock")
	out, err := exec.Command(
		"go", "build", "-o", dir, "github.com/interlockdev/interlock/cmd/interlock",
		"github.com/interlockdev/interlock/cmd/interlock-hook",
	).CombinedOutput()
	if err != nil {
		built.err = fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
}

// Main runs the tests and removes the binary that they built; TestMain calls it.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

// Binary is the path of the interlock binary, built once per test process, with interlock-hook
// beside it. Its package's TestMain must call Main.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(build)
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// Start starts a server that is killed at the end of the test, if it still runs
// then.
func Start(t testing.TB, cfg launch.Config) *launch.Server {
	t.Helper()
	s, err := TryStart(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TryStart is Start for tests that expect a server to refuse.
func TryStart(t testing.TB, cfg launch.Config) (*launch.Server, error) {
	t.Helper()
	if cfg.Binary == "" {
		cfg.Binary = Binary(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	s, err := launch.Start(ctx, cfg)
	if err == nil {
		t.Cleanup(s.Kill)
	}
	return s, err
}
