//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// runToolScript runs a script that needs more programs than Go.
func runToolScript(r *rig, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	r.runScript(file, string(text))
}

func TestSignedLandings(t *testing.T) {
	tools.Need(t, "bash", "ssh-keygen")
	runToolScript(newRig(t), "testdata/tools/sign.txt")
}

// A merger that is asked to end does so, though its server is gone and a check runs on.
func TestMergeServeEndsWithoutServer(t *testing.T) {
	tools.Need(t, "bash")
	r := newRig(t)
	repo := filepath.Join(t.TempDir(), "web")
	script := `git init -q -b main "$0" && cd "$0" &&
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one &&
git checkout -q -b two && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two && git rev-parse two`
	out, err := exec.Command("bash", "-c", script, repo).Output()
	if err != nil {
		t.Fatal(err)
	}
	p := r.start("merge", "serve", "web/main", "--repo", repo, "--check", "unit=trap '' TERM; sleep 1000")
	p.expect("ready")
	r.must("task", "create", "merge.web.main", `{"id":"a","head":"`+string(out[:40])+`"}`)
	p.expect("in line")
	r.server.Kill()
	p.signal(syscall.SIGTERM)
	p.ends(0)
}
