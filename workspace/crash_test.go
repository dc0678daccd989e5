//go:build unix

package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// crashStep marks a run of this test binary that takes one step of TestKilled.
const crashStep = "INTERLOCK_TEST_CRASH_STEP"

// TestKilled kills a process with SIGKILL at each of its calls of git, while it creates a workspace, takes the
// target in, submits, and deletes. The step is then repeated, and nothing may be lost. What
// kills is a script in front of git, and of the sandbox that git runs in.
func TestKilled(t *testing.T) {
	if step := os.Getenv(crashStep); step != "" {
		takeStep(t, step, os.Getenv("CRASH_ROOT"), os.Getenv("CRASH_SOURCE"))
		return
	}
	if os.Getenv(asOther) != "" {
		return // root has done it
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	sandbox, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	bin, counts := t.TempDir(), t.TempDir()
	for name, path := range map[string]string{"git": real, "bwrap": sandbox} {
		script := `#!/bin/sh
n=$(($(cat "$CRASH_DIR/calls") + 1)); echo $n > "$CRASH_DIR/calls"
if [ $n = $(cat "$CRASH_DIR/kill") ]; then kill -9 $PPID; exit 1; fi
exec ` + path + ` "$@"
`
		script = strings.ReplaceAll(script, "$CRASH_DIR", counts)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"create", "sync", "submit", "delete"} {
		t.Run(step, func(t *testing.T) {
			stride := 1
			if testing.Short() {
				stride = 3
			}
			kills := 0
			for call := 1; killAt(t, bin, counts, step, call); call += stride {
				if kills++; kills > 60 {
					t.Fatal("it never ends")
				}
			}
			if kills*stride < 4 {
				t.Errorf("it was killed %d times only", kills)
			}
		})
	}
}

// killAt prepares what a step needs, kills it at a call of git, repeats it, and checks what is there.
// It returns false if the step has fewer calls.
func killAt(t *testing.T, bin, temp, step string, call int) (killed bool) {
	r := newRig(t)
	if step != "create" {
		w := r.create(Options{Name: "a", Kind: Worktree})
		r.in(w, "echo committed > c.txt; git add c.txt; git commit -qm c; echo untracked > u.txt")
		r.write(filepath.Join(r.source, "docs/guide.md"), "landed\n")
		r.commit("landed")
	}
	r.write(filepath.Join(temp, "calls"), "0\n")
	r.write(filepath.Join(temp, "kill"), strconv.Itoa(call)+"\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestKilled$", "-test.count=1")
	cmd.Env = append(
		os.Environ(), crashStep+"="+step, "CRASH_ROOT="+r.host.Root, "CRASH_SOURCE="+r.source,
		"PATH="+bin+":"+os.Getenv("PATH"),
	)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		killed = ok && status.Signal() == syscall.SIGKILL
	}
	if err != nil && !killed {
		t.Fatalf("call %d: %v\n%s", call, err, out)
	}
	if killed {
		takeStep(t, step, r.host.Root, r.source)
	}
	r.afterStep(step)
	if t.Failed() {
		t.Fatalf("killed at call %d of git", call)
	}
	return killed
}

func takeStep(t *testing.T, step, root, source string) {
	t.Helper()
	ctx := context.Background()
	host, err := NewHost(root)
	if err != nil {
		t.Fatal(err)
	}
	host.MinFree = -1
	if step == "create" {
		p, err := host.Prepare(ctx, Options{Name: "a", Source: source, Kind: Worktree})
		if err == nil {
			_, err = host.Create(ctx, p)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if step == "delete" {
		if _, err := host.Delete(ctx, "web", "a", true); err != nil {
			t.Fatal(err)
		}
		return
	}
	w, err := host.Open("web", "a")
	if err != nil {
		t.Fatal(err)
	}
	if step == "sync" {
		_, err = w.Sync(ctx)
	} else {
		_, err = w.Submit(ctx, "all", true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// afterStep checks that all work is where it should be.
func (r *rig) afterStep(step string) {
	r.t.Helper()
	if step == "delete" {
		ref := savedRef("a", 1)
		r.want("saved", r.git("show", ref+":u.txt")+r.git("show", ref+":c.txt"), "untrackedcommitted")
		r.want("refs", r.git("for-each-ref", keepAll), "")
		return
	}
	w, err := r.host.Open("web", "a")
	if err != nil {
		r.t.Error(err)
		return
	}
	r.in(w, "git fsck --no-dangling")
	switch step {
	case "create":
		r.want("status", r.in(w, "git status --porcelain"), "")
		if refs := strings.Fields(r.git("for-each-ref", "--format=%(refname)", keepAll)); len(refs) != 1 {
			r.t.Errorf("the source keeps %v", refs)
		}
	case "sync":
		r.want("files", r.in(w, "cat c.txt u.txt docs/guide.md"), "committed\nuntracked\nlanded")
	case "submit":
		last := w.Submissions[len(w.Submissions)-1]
		r.want("submitted", r.git("show", last.Ref+":u.txt")+r.git("show", last.Ref+":c.txt"), "untrackedcommitted")
	}
}
