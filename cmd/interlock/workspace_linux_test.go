package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// An ordinary user has workspaces, too: all files by default, and an overlay that commands inside see.
func TestWorkspaceOfOrdinaryUser(t *testing.T) {
	tools.Need(t, "bash")
	r := newRig(t)
	dir := t.TempDir()
	binary, home := filepath.Join(dir, "interlock"), filepath.Join(dir, "home")
	program, err := os.ReadFile(launchtest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	attributes := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		const user = 65534
		for _, path := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(home, user, user); err != nil {
			t.Fatal(err)
		}
		attributes.Credential = &syscall.Credential{Uid: user, Gid: user}
	}
	cmd := exec.Command("bash", "-ec", `
		git init -q -b main web && cd web && git config user.name Ada && git config user.email ada@example.org
		mkdir src && echo one > src/a.txt && git add . && git commit -qm first
		cat "$(interlock workspace new plain)/src/a.txt"
		interlock workspace new over --kind overlay > ../path
		ls "$(cat ../path)" | wc -l
		interlock workspace run over -- sh -c 'cat src/a.txt; echo two > src/a.txt; id -u; git commit -qam two'
		interlock workspace run over -- cat src/a.txt
		cat src/a.txt
		interlock workspace diff over --names
		interlock workspace delete over || interlock workspace delete over --force
		git show refs/interlock/saved/over:src/a.txt
		interlock workspace delete plain
	`)
	cmd.Dir, cmd.SysProcAttr = home, attributes
	cmd.Env = append(r.env, "HOME="+home, "PATH="+dir+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `
interlock: workspace:web/plain: * at * of main (no overlay: only root may mount*)
one
interlock: workspace:web/over: overlay at * of main (*visible to *interlock workspace run* only)
0
one
*
two
one
M	src/a.txt
interlock: workspace web/over has work that was not submitted (1 commit)*
deleted web/over
interlock: saved 1 commit: *
two
deleted web/plain`
	lines := func(text string) []string { return dropEmpty(strings.Split(text, "\n")) }
	if !matchLines(lines(want), lines(string(out))) {
		t.Errorf("it wrote:\n%s\nwant:%s", out, want)
	}
}
