//go:build unix

package depstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// changes are the calls that change the machine.
func (c *clone) changes() (list []string) {
	for _, call := range c.calls("apt-get") {
		if !strings.Contains(call, " -s ") {
			list = append(list, call)
		}
	}
	return append(list, c.calls("sudo")...)
}

// Without a terminal and without YES=1 a list is all that happens.
func TestAsksFirst(t *testing.T) {
	c := newClone(t, "git", "redis-server")
	list := []string{
		"with sudo apt-get: git (with what they need 2 packages, 4 MB to download, 10 MB installed)",
		"dist/servers/redis-server: some 5 MB, in " + c.machine + "/home/.cache/interlock-test/servers-redis-server-",
	}
	c.runs("", "install-deps.sh -n peers", list...)
	c.fails("", "install-deps.sh peers", append(list, "Nothing was installed", "run: YES=1 make deps")...)
	if changes := c.changes(); len(changes) > 0 || c.installed("servers/redis-server") != "" {
		t.Errorf("it changed the machine: %s", changes)
	}
}

// On a terminal it asks once, for all.
func TestTerminal(t *testing.T) {
	tools.Need(t, "script")
	c := newClone(t, "git", "redis-server")
	typed := func(answer string) string {
		cmd := exec.Command("script", "-qec", filepath.Join(c.folder, "scripts/install-deps.sh")+" peers", os.DevNull)
		cmd.Env = append(slices.Clone(c.env), "SHELL=/bin/sh")
		cmd.Stdin = strings.NewReader(answer)
		out, _ := cmd.CombinedOutput() // the script's state is what counts
		return string(out)
	}
	c.has(typed("n\n"), "Install this? [y/N]", "Nothing was installed.")
	if changes := c.changes(); len(changes) > 0 {
		t.Errorf("it changed the machine against the answer: %s", changes)
	}
	out := typed("y\n")
	n := strings.Count(out, "Install this?")
	if n != 1 || c.installed("servers/redis-server") == "" || len(c.calls("sudo")) != 2 {
		t.Errorf("it asked %d times, then: %s\n%s", n, c.changes(), out)
	}
}

// With YES=1 it installs, with the programs that keep services from being enabled first in PATH.
func TestInstalls(t *testing.T) {
	c := newClone(t, "git")
	c.runs("YES=1", "install-deps.sh peers")
	calls := c.calls("sudo")
	if len(calls) != 2 || !strings.HasPrefix(calls[0], "sudo apt-get update") {
		t.Fatalf("calls: %s", calls)
	}
	c.has(calls[1], "--no-remove", "NEEDRESTART_SUSPEND=1", "DPkg::Path="+c.folder+"/scripts/no-services:", " git")
}

// A user without root and sudo passes if nothing is missing; otherwise the error names the next step.
func TestWithoutRoot(t *testing.T) {
	newClone(t, "sudo", "apt-get").runs("", "install-deps.sh peers", "nothing is missing")
	newClone(t, "sudo", "git").fails("YES=1", "install-deps.sh peers", "Run this as root first: apt-get install", " git")
	newClone(t, "apt-get", "git").fails("YES=1", "install-deps.sh peers", "no apt-get", "missing Debian packages: git")
	newClone(t, "apt-get", "redis-server").fails("YES=1", "install-deps.sh peers", "no apt-get", "redis-server")
	c := newClone(t)
	c.program("go", "echo go1.19")
	c.fails("YES=1", "install-deps.sh peers", "Interlock needs Go 1.", "here is: go1.19")
}

// Package lists that are empty hide the size only.
func TestEmptyLists(t *testing.T) {
	c := newClone(t, "git")
	c.program("apt-get", "exit 100")
	c.runs("", "install-deps.sh -n peers", "git (of unknown size")
}

// A server is unpacked without root, with the libraries that are missing, and starts with their path.
func TestUnpacksServer(t *testing.T) {
	c := newClone(t, "redis-server", "sudo")
	c.runs("YES=1", "server-tools.sh redis-server postgresql", "installing dist/servers/redis-server")
	calls := c.calls("apt-get")
	c.has(calls[len(calls)-1], "download redis-server redis-tools libfoo1")
	if strings.Contains(calls[len(calls)-1], "libc6") {
		t.Error("it downloads a C library")
	}
	folder := c.installed("servers/redis-server")
	cmd := exec.Command(filepath.Join(folder, "bin/redis-server"), "--port", "0")
	cmd.Env = c.env
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != folder+"/root/usr/lib/x86_64-linux-gnu: --port 0\n" {
		t.Errorf("it starts as %q, %v", out, err)
	}
	c.runs("", "server-tools.sh redis-server")
	if len(c.calls("apt-get")) != len(calls) {
		t.Error("it was unpacked again")
	}
}

// The programs that stand in for those that enable and start services do neither.
func TestNoServices(t *testing.T) {
	c := newClone(t)
	for _, line := range []string{
		"deb-systemd-helper enable x.service", "deb-systemd-invoke start x.service", "invoke-rc.d x start",
		"service x restart", "systemctl --system enable --now x", "systemctl restart x", "update-rc.d x defaults",
	} {
		c.runs("", "no-services/"+line)
	}
	c.fails("", "no-services/deb-systemd-helper --quiet was-enabled x.service")
}
