//go:build unix

package depstest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Clones share what they install, as long as the lock files and the interpreters are the same.
func TestShares(t *testing.T) {
	c := newClone(t)
	// There is a folder where the link is to be.
	c.do(os.MkdirAll(filepath.Join(c.folder, "dist/typescript/node_modules"), 0o755))
	c.runs("YES=1", "typescript-tools.sh", "installing dist/typescript: some 40 MB")
	first := c.installed("typescript")
	c.has(first, c.machine+"/home/.cache/interlock-test/typescript-")
	second := c.another()
	second.runs("", "typescript-tools.sh -n")
	if second.installed("typescript") != "" {
		t.Error("the list made a link")
	}
	second.runs("", "typescript-tools.sh")
	if got := second.installed("typescript"); got != first || len(c.calls("npm")) != 1 {
		t.Errorf("links to %s and %s, npm was called %d times", first, got, len(c.calls("npm")))
	}

	c.program("node", "echo v22")
	c.runs("YES=1", "typescript-tools.sh", "installing")
	if got := c.installed("typescript"); got == first || got == "" {
		t.Errorf("with another Node it links to %q", got)
	}
	c.do(os.WriteFile(filepath.Join(second.folder, "clients/typescript/package-lock.json"), nil, 0o644))
	second.fails("", "typescript-tools.sh", "Nothing was installed")
}

// INTERLOCK_TEST_CACHE moves the cache, or lets the clone have its own; cleaning removes nothing else from it.
func TestCacheFolder(t *testing.T) {
	c := newClone(t)
	c.env = append(c.env, "YES=1")
	c.runs("INTERLOCK_TEST_CACHE=off", "typescript-tools.sh")
	c.has(c.installed("typescript"), c.folder+"/dist/cache/typescript-")
	other := t.TempDir()
	c.do(os.WriteFile(filepath.Join(other, "mine"), nil, 0o644))
	c.runs("INTERLOCK_TEST_CACHE="+other, "typescript-tools.sh")
	c.has(c.installed("typescript"), other+"/typescript-")
	c.runs("INTERLOCK_TEST_CACHE="+other, "install-deps.sh clean")
	left, err := os.ReadDir(other)
	if err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// began starts a script, without questions, and returns when it has printed the text.
func (c *clone) began(text string) *exec.Cmd {
	c.t.Helper()
	cmd := c.command("typescript-tools.sh")
	cmd.Env = append(cmd.Env, "YES=1")
	out, err := cmd.StdoutPipe()
	c.do(err)
	cmd.Stderr = cmd.Stdout
	c.do(cmd.Start())
	c.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	})
	for output := bufio.NewReader(out); ; {
		line, err := output.ReadString('\n')
		c.do(err)
		if strings.Contains(line, text) {
			return cmd
		}
	}
}

// gate makes npm wait for a line in the file that it returns.
func (c *clone) gate() string {
	c.t.Helper()
	gate := filepath.Join(c.machine, "gate")
	c.do(syscall.Mkfifo(gate, 0o600))
	return gate
}

// Of two runs at once one installs and the other waits, and neither shows half of it.
func TestTwoAtOnce(t *testing.T) {
	c := newClone(t)
	other, gate := c.another(), c.gate()
	one := c.began("begun")
	two := other.began("waiting for another run")
	if c.installed("typescript")+other.installed("typescript") != "" {
		t.Error("half of it is there")
	}
	c.do(os.WriteFile(gate, []byte("go\n"), 0))
	c.do(one.Wait())
	c.do(two.Wait())
	first, second, calls := c.installed("typescript"), other.installed("typescript"), c.calls("npm")
	if first == "" || second != first || len(calls) != 1 {
		t.Errorf("links to %q and %q, calls: %s", first, second, calls)
	}
}

// What a run leaves that fails or is killed is no installation, and no lock.
func TestCutShort(t *testing.T) {
	c := newClone(t)
	for end, cut := range map[string]func(gate string, group int) error{
		"failure":   func(gate string, _ int) error { return os.WriteFile(gate, []byte("fail\n"), 0) },
		"interrupt": func(_ string, group int) error { return syscall.Kill(-group, syscall.SIGINT) },
		"kill":      func(_ string, group int) error { return syscall.Kill(-group, syscall.SIGKILL) },
	} {
		gate := c.gate()
		cmd := c.began("begun")
		c.do(cut(gate, cmd.Process.Pid))
		if cmd.Wait() == nil || c.installed("typescript") != "" {
			t.Errorf("after %s it is installed", end)
		}
		c.do(os.Remove(gate))
	}
	c.runs("YES=1", "typescript-tools.sh", "installing")
	if c.installed("typescript") == "" {
		t.Error("it is not installed")
	}
}
