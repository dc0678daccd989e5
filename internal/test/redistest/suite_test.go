//go:build unix

package redistest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// redisAddress is the default address of Redis, which some suites expect. It is that of the network
// namespace of the tests.
const redisAddress = "127.0.0.1:6379"

// door starts a server that answers at an address, for tests.
func door(t *testing.T, address string) *launch.Server {
	t.Helper()
	return launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Args: []string{"--resp", address, "--resp-test"}})
}

// snippetDoor starts a server as users do, and returns where it answers.
func snippetDoor(t *testing.T) string {
	t.Helper()
	args := []string{"--resp", "127.0.0.1:0", "--resp-strip", "lock:"}
	return launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Args: args}).RESP
}

// suite is a program that prints a line for each of its tests.
type suite struct {
	dir    string
	env    []string
	line   *regexp.Regexp // of a test; passed and name are groups of it
	all    int            // how many tests it has
	failed map[string]bool
	row    string // how docs/redis.md names it
}

var (
	pytestLine = regexp.MustCompile(`(?m)^(?P<name>tests/\S+(?: \S+)*?) (?P<verdict>PASSED|FAILED|ERROR|SKIPPED)`)
	goLine     = regexp.MustCompile(`(?m)^ *--- (?P<verdict>PASS|FAIL|SKIP): (?P<name>\S+)`)
	tapLine    = regexp.MustCompile(`(?m)^(?P<verdict>ok|not ok) \d+ (?P<name>.*)$`)
)

// run runs the program and reports each of its tests as one of ours.
func (s *suite) run(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, append(os.Environ(), s.env...), time.Second
	cmd.Env = append(cmd.Env, "PYTHONDONTWRITEBYTECODE=1")
	// Servers that the suite has started and left behind end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	names := s.line.SubexpNames()
	seen := map[string]bool{}
	passed := 0
	for _, match := range s.line.FindAllStringSubmatch(string(out), -1) {
		var name, verdict string
		for i, group := range names {
			switch group {
			case "name":
				name = match[i]
			case "verdict":
				verdict = match[i]
			}
		}
		if seen[name] && s.line == pytestLine {
			continue // the error of a test that was reported already
		}
		seen[name] = true
		good := verdict == "PASSED" || verdict == "PASS" || verdict == "ok"
		if good {
			passed++
		}
		t.Run(name, func(t *testing.T) {
			if good == s.failed[name] {
				t.Errorf("%s %s", verdict, name)
			}
		})
	}
	if passed != s.all-len(s.failed) {
		t.Errorf("%d tests passed, want %d of %d: %v\n%s", passed, s.all-len(s.failed), s.all, err, tail(out))
	}
	row := fmt.Sprintf("| %s | %d / %d |", s.row, passed, s.all)
	page, err := os.ReadFile("../../../docs/redis.md")
	if err != nil || !strings.Contains(string(page), row) {
		t.Errorf("docs/redis.md has no row %s (%v)", row, err)
	}
}

// tail returns the end of an output.
func tail(out []byte) string { return string(out[max(0, len(out)-8<<10):]) }

// copyOf returns a copy of a folder that tests may write to.
func copyOf(t *testing.T, folder string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o700)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// pytest returns the arguments that run tests of a distribution as its own configuration would.
func pytest(args ...string) []string {
	return append([]string{
		"-m", "pytest", "-v", "-c", os.DevNull, "--rootdir=.", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto",
	}, args...)
}

func python(t *testing.T) string {
	t.Helper()
	tools.Need(t, tools.RedisSuites)
	return filepath.Join(tools.RedisFolder(), "venv/bin/python")
}

func TestRedisPy(t *testing.T) {
	program := python(t)
	server := door(t, "127.0.0.1:0")
	for _, version := range []string{"2", "3"} {
		t.Run("protocol"+version, func(t *testing.T) {
			s := suite{
				dir: copyOf(t, filepath.Join(tools.RedisFolder(), "redis-8.1.0")), line: pytestLine, all: 92,
				row: "redis-py 8.1.0 `Lock`, sync and asyncio, protocol " + version,
			}
			s.run(t, program, pytest(
				"tests/test_lock.py", "tests/test_asyncio/test_lock.py", "--redis-url", "redis://"+server.RESP,
				"--protocol", version,
			)...)
		})
	}
}

func TestPottery(t *testing.T) {
	program := python(t)
	server := door(t, "127.0.0.1:0")
	fixtures, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	s := suite{
		dir: copyOf(t, filepath.Join(tools.RedisFolder(), "pottery-3.0.1")), line: pytestLine, all: 69,
		env: []string{"REDIS_URL=redis://" + server.RESP + "/1", "PYTHONPATH=" + fixtures},
		// It compares the text of a client of an older redis-py.
		failed: map[string]bool{"tests/test_redlock.py::TestRedlock::test_releaseunlockedlock_repr": true},
		row:    "pottery 3.0.1 `Redlock`, `AIORedlock`",
	}
	s.run(t, program, pytest("-p", "pottery_fixtures", "tests/test_redlock.py", "tests/test_aioredlock.py")...)
}

func TestRedlockPy(t *testing.T) {
	program := python(t)
	door(t, redisAddress)
	s := suite{
		dir: copyOf(t, filepath.Join(tools.RedisFolder(), "redlock-py-1.0.8")), line: pytestLine, all: 6,
		env: []string{"PYTHONPATH=."}, row: "redlock-py 1.0.8",
	}
	s.run(t, program, pytest("tests")...)
}

func TestRedlock(t *testing.T) {
	tools.Need(t, tools.RedisSuites, "node")
	door(t, redisAddress)
	folder, err := filepath.Abs(tools.RedisFolder())
	if err != nil {
		t.Fatal(err)
	}
	s := suite{
		dir: folder, line: tapLine, all: 224,
		row: "redlock (npm) 4.2.0, over redis 3 and ioredis 4, one server and three",
	}
	s.run(t, "node", "node_modules/mocha/bin/mocha", "--exit", "--reporter", "tap", "node_modules/redlock/test.js")
}

// module returns a copy of the folder of a Go module.
func module(t *testing.T, path string) string {
	t.Helper()
	source, err := sourceOf(path)
	if err != nil {
		t.Fatal(err)
	}
	return copyOf(t, source)
}

func TestRedislock(t *testing.T) {
	door(t, redisAddress)
	s := suite{dir: module(t, redislock), line: goLine, all: 17, row: "bsm/redislock 0.9.4"}
	s.run(t, "go", "test", "-v", ".")
}

func TestRedsync(t *testing.T) {
	reservePorts(t, 51_200, 48) // its own numbers
	s := suite{
		dir: module(t, redsync), line: goLine, all: 95,
		env: []string{
			"PATH=" + redisServer(t) + string(filepath.ListSeparator) + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(),
		},
		row: "redsync 4.18.1, over six clients and 48 servers",
	}
	s.run(t, "go", "test", "-v", ".")
}
