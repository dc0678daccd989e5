package redistest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// isolatedVariable is set in the network namespace of the tests.
const isolatedVariable = "INTERLOCK_REDISTEST_ISOLATED"

// isolate runs the tests in a network namespace of their own, because some suites expect Redis at its
// default port, where this machine may have one. It replaces the process. The namespace leads nowhere, so
// it first fetches the modules that suites in Go need.
func isolate() error {
	if os.Getenv(tools.Variable) == "" || os.Getenv(isolatedVariable) != "" {
		return nil
	}
	for _, path := range modules {
		if err := fetch(path); err != nil {
			return err
		}
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return fmt.Errorf("%w: make deps installs util-linux", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{
		unshare, "--user", "--map-root-user", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, self,
	}
	return syscall.Exec(unshare, append(args, os.Args[1:]...), append(os.Environ(), isolatedVariable+"=1"))
}

// The modules with suites that run here, in the versions of bench/peers.
const (
	redislock = "github.com/bsm/redislock"
	redsync   = "github.com/go-redsync/redsync/v4"
)

var modules = []string{redislock, redsync}

// sourceOf returns the folder of a module in the module cache.
func sourceOf(path string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Dir = "../../../bench/peers"
	out, err := cmd.Output()
	var found struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return found.Dir, nil
}

// fetch builds the tests of a module, and so fetches all that they need.
func fetch(path string) error {
	source, err := sourceOf(path)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-o", os.DevNull, ".")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", path, err, out)
	}
	return nil
}
