//go:build unix

package depstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// real are the programs that the scripts call as they are.
var real = []string{
	"awk", "bash", "cat", "chmod", "cp", "dirname", "env", "flock", "grep", "head", "ln", "mkdir", "mv", "readlink", "rm",
	"sed", "setpriv", "sh", "sha256sum", "sort", "uname",
}

// fake are programs with a script for each. All note their arguments in $CALLS.
var fake = map[string]string{
	"id":      `echo 1000`,
	"go":      `echo go99.0`,
	"git":     ``,
	"node":    `echo v20`,
	"python3": `echo Python 3`,
	// If there is a gate, it reports that it began and waits for a line from there.
	"npm": `mkdir -p node_modules/made
if [ -e $GATE ]; then echo begun >&2; read -r go <$GATE; fi
[ "$go" != fail ]`,
	"redis-server": ``,
	"postgres":     ``,
	"sudo":         `exec "$@"`,
	"apt-cache":    `printf 'Package: %s\nSize: %s\nInstalled-Size: %s\n\n' git 3000000 8000 libfoo1 1000000 2000`,
	"apt-get": `case "$*" in
*' -s '* | -s*) printf 'Inst %s (2 Debian [amd64])\n' libfoo1 'libc6 [1]' ssl-cert 'git [1]' ;;
*download*) while [ "$1" != download ]; do shift; done; shift; for p; do : >"$p.deb"; done ;;
esac`,
	"dpkg-deb": `mkdir -p $3/usr/bin $3/usr/lib/x86_64-linux-gnu
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH $*"\n' >$3/usr/bin/redis-server
chmod +x $3/usr/bin/redis-server`,
}

// clone is a folder with copies of the scripts, on a machine that other clones may share.
type clone struct {
	t       *testing.T
	folder  string
	machine string
	env     []string
}

// newClone makes a clone on a new machine without the programs that are named.
func newClone(t *testing.T, without ...string) *clone {
	t.Helper()
	tools.Need(t, "bash", "flock")
	c := &clone{t: t, machine: t.TempDir()}
	bin := filepath.Join(c.machine, "bin")
	c.do(os.Mkdir(bin, 0o755))
	for _, name := range real {
		path, err := exec.LookPath(name)
		c.do(err)
		c.do(os.Symlink(path, filepath.Join(bin, name)))
	}
	for name, body := range fake {
		if !slices.Contains(without, name) {
			c.program(name, body)
		}
	}
	c.env = []string{
		"PATH=" + bin, "HOME=" + filepath.Join(c.machine, "home"), "CALLS=" + filepath.Join(c.machine, "calls"),
		"GATE=" + filepath.Join(c.machine, "gate"), "AGAIN=make deps",
	}
	c.folder = c.sources()
	return c
}

// another returns another clone on the machine.
func (c *clone) another() *clone {
	other := *c
	other.folder = c.sources()
	return &other
}

// sources copies what the scripts read.
func (c *clone) sources() string {
	c.t.Helper()
	folder := c.t.TempDir()
	for _, name := range []string{"go.mod", "clients/typescript/package.json", "clients/typescript/package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(tools.Root(), name))
		c.do(err)
		c.do(os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755))
		c.do(os.WriteFile(filepath.Join(folder, name), text, 0o644))
	}
	out, err := exec.Command("cp", "-R", filepath.Join(tools.Root(), "scripts"), folder).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	return folder
}

func (c *clone) do(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// program puts a program into PATH.
func (c *clone) program(name, body string) {
	c.t.Helper()
	text := fmt.Sprintf("#!/bin/bash\necho \"%s $*\" >>$CALLS\n%s\n", name, body)
	c.do(os.WriteFile(filepath.Join(c.machine, "bin", name), []byte(text), 0o755))
}

// command is a script of the clone, in a group of its own.
func (c *clone) command(line ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.folder, "scripts", line[0]), line[1:]...)
	cmd.Dir, cmd.Env = c.machine, c.env // it must not matter where it is started
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a script and returns what it prints.
func (c *clone) run(env string, line ...string) (output string, err error) {
	cmd := c.command(line...)
	if env != "" {
		cmd.Env = append(slices.Clone(c.env), env)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// runs runs a script that must succeed with these texts in its output.
func (c *clone) runs(env, line string, texts ...string) {
	c.t.Helper()
	out, err := c.run(env, strings.Fields(line)...)
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", env, line, err, out)
	}
	c.has(out, texts...)
}

// fails runs a script that must fail with these texts in its output.
func (c *clone) fails(env, line string, texts ...string) {
	c.t.Helper()
	out, err := c.run(env, strings.Fields(line)...)
	if err == nil {
		c.t.Fatalf("%s %s succeeded\n%s", env, line, out)
	}
	c.has(out, texts...)
}

func (c *clone) has(text string, parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// calls returns the calls of a program so far.
func (c *clone) calls(name string) (list []string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.machine, "calls"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if line := strings.TrimSpace(string(line)); strings.HasPrefix(line, name+" ") {
			list = append(list, line)
		}
	}
	return list
}

// installed returns where a link of dist leads to, "" if it is not there.
func (c *clone) installed(name string) string {
	to, _ := os.Readlink(filepath.Join(c.folder, "dist", name))
	return to
}
