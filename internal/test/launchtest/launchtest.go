package launchtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/filelock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// built is the binary, once a test has asked for it.
var built struct {
	once sync.Once
	path string
	err  error
}

// build makes the binaries in bin/test and copies them to a folder of this process. "go build" leaves a binary alone
// that is current, so of all test processes of a run only the first one links. Another process with other sources
// replaces what is in bin/test at any time, so it is copied under the lock, and never run itself.
func build() {
	built.path, built.err = func() (string, error) {
		shared := filepath.Join(tools.Root(), "bin/test")
		if err := os.MkdirAll(shared, 0o755); err != nil {
			return "", err
		}
		lock, err := os.OpenFile(filepath.Join(shared, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return "", err
		}
		defer lock.Close()
		if err := filelock.Wait(lock); err != nil {
			return "", err
		}
		if err := run("go", "build", "-C", tools.Root(), "-ldflags=-w", "-o", shared+"/",
			"./cmd/interlock", "./cmd/interlock-hook"); err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp("", "interlock-binary-")
		if err != nil {
			return "", err
		}
		// Not io.Copy: a process that another test starts meanwhile would have the file open, and exec refuses
		// such files.
		err = run("cp", filepath.Join(shared, "interlock"), filepath.Join(shared, "interlock-hook"), dir)
		return filepath.Join(dir, "interlock"), err
	}()
}

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	return nil
}

// Main runs the tests and removes the binary that they built; TestMain calls it.
//
// A test run below nohup ignores SIGHUP, and one that a script began with "&" SIGINT and SIGQUIT. The commands of the
// tests would ignore these, too, and a shell cannot trap them. A signal that this process handles has its default
// effect in them.
func Main(m interface{ Run() int }) {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // which this process goes on to ignore
		}
	}
	code := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

// Binary is the path of this test process's copy of the interlock binary, with interlock-hook beside it. The TestMain
// of its package must call Main.
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
	// A server that is started again finds these addresses still free.
	ports := busy.Ports(t, 2)
	cfg.Args = append([]string{"--http", ports[0], "--grpc", ports[1]}, cfg.Args...)
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	s, err := launch.Start(ctx, cfg)
	if err == nil {
		t.Cleanup(s.Kill)
	}
	return s, err
}
