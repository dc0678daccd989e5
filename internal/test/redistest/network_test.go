//go:build unix

package redistest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

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

// reservedPorts lists the ports of a network namespace that the kernel never chooses by itself.
const reservedPorts = "/proc/sys/net/ipv4/ip_local_reserved_ports"

// reservePorts keeps n ports, from the first one, free for a suite with fixed ports. Without that a server or a
// connection with any port might have one of them. They stay reserved, in the network namespace of the tests. Without
// one the test is skipped.
func reservePorts(t *testing.T, first, n int) {
	t.Helper()
	tools.Need(t, "unshare") // which isolate has called then
	if err := os.WriteFile(reservedPorts, fmt.Appendf(nil, "%d-%d", first, first+n-1), 0); err != nil {
		t.Fatalf("reserve the ports of the suite: %v", err)
	}
}

// A port that is reserved is not chosen, and can be asked for.
func TestReservedPorts(t *testing.T) {
	reservePorts(t, 51_200, 48)
	const all = "/proc/sys/net/ipv4/ip_local_port_range"
	before, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(all, before, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(all, []byte("51200 51249"), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the two ports that are left
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if port := l.Addr().(*net.TCPAddr).Port; port != 51_248 && port != 51_249 {
			t.Errorf("port %d is chosen", port)
		}
	}
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Errorf("%v is chosen, when all others are in use", l.Addr())
		l.Close()
	}
	l, err := net.Listen("tcp", "127.0.0.1:51200")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
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
