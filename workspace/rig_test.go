//go:build unix

package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// asOther marks a run of this test binary as an ordinary user.
const asOther = "INTERLOCK_TEST_AS_OTHER"

// TestAsOrdinaryUser runs the tests of this package as an ordinary user, if this user is root.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv(asOther) != "" || os.Getenv(onXFS) != "" {
		return // it is done by all other tests
	}
	const nobody = 65534
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	binary, home := filepath.Join(dir, "test"), filepath.Join(dir, "home")
	if err := os.WriteFile(binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.timeout=20m"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, asOther + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
	t.Logf("as nobody:\n%s", out)
}

// onXFS marks a run of this test binary on a file system that shares blocks.
const onXFS = "INTERLOCK_TEST_ON_XFS"

// TestOnXFS runs the tests of this package on a file system that shares blocks, if this user may mount one.
func TestOnXFS(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv(asOther) != "" || os.Getenv(onXFS) != "" {
		return
	}
	tools.Need(t, "mkfs.xfs")
	dir := t.TempDir()
	image, root := filepath.Join(dir, "image"), filepath.Join(dir, "root")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Truncate(image, 1<<30), os.Mkdir(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.xfs", "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.xfs: %v\n%s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, root).CombinedOutput(); err != nil {
		t.Logf("the kernel mounts no image with XFS here: %v\n%s", err, out)
		return
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", root).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	if err := (machine{}).reflink(root); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.timeout=20m", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short", "-test.run=^Test(Life|Isolation|DeleteSavesAll|KilledWhileCreating)$")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+root, onXFS+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("on XFS: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "/reflink ") {
		t.Errorf("no workspace was a reflink:\n%s", out)
	}
}

// bare marks a run of this test binary as on a system that has no sandbox.
const bare = "INTERLOCK_TEST_NO_SANDBOX"

// TestWithoutSandbox runs what matters where git runs on a view of the private git directory.
func TestWithoutSandbox(t *testing.T) {
	if os.Getenv(asOther) != "" || os.Getenv(onXFS) != "" || os.Getenv(bare) != "" {
		return // it is done once
	}
	cmd := exec.Command(
		os.Args[0], "-test.timeout=20m", "-test.short",
		"-test.run=^Test(Life|Sync|SubmitAfterLanding|DeleteSavesAll|DeleteLosesNothing|DeleteKeepsNestedRepository"+
			"|ForeignConfiguration|Upstream|HostileAgent|ChangedInTheSecondOfTheIndex)$",
	)
	cmd.Env = append(os.Environ(), bare+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("without a sandbox: %v\n%s", err, out)
	}
}

// rig is a source repository and a host.
type rig struct {
	t      *testing.T
	ctx    context.Context
	host   *Host
	source string // the folder of its files
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "home", ".gitconfig"))
	r := &rig{t: t, ctx: t.Context(), source: filepath.Join(dir, "Web")}
	r.write(
		filepath.Join(dir, "home", ".gitconfig"),
		"[user]\n\tname = Ada\n\temail = ada@example.org\n[core]\n\texcludesFile = ~/ignored\n",
	)
	r.write(filepath.Join(dir, "home", "ignored"), "*.swp\n")
	host, err := NewHost(filepath.Join(dir, "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	r.host = host
	r.host.MinFree, r.host.noSandbox = -1, os.Getenv(bare) != ""
	t.Cleanup(func() {
		for list, _ := mountsBelow(dir); len(list) > 0; list = list[:len(list)-1] {
			_ = unmount(list[len(list)-1])
		}
		_ = removeAll(host.Root)
	})
	r.write(filepath.Join(r.source, "README.md"), "hello\n")
	r.write(filepath.Join(r.source, "src/auth.go"), "package src\n\nfunc login() {}\n\nfunc logout() {}\n")
	r.write(filepath.Join(r.source, "src/deep/a.txt"), "a\n")
	r.write(filepath.Join(r.source, "docs/guide.md"), "guide\n")
	r.write(filepath.Join(r.source, ".gitignore"), ".env\nnode_modules/\nbuild/\n")
	r.git("init", "--quiet", "--initial-branch=main")
	r.commit("first")
	return r
}

func (r *rig) write(path, content string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// git runs git in the source as a person would.
func (r *rig) git(args ...string) string {
	r.t.Helper()
	return r.shell(nil, r.source, append([]string{"git"}, args...)...)
}

// commit commits all files of the source, and returns the commit.
func (r *rig) commit(message string) string {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", message)
	return r.git("rev-parse", "HEAD")
}

func (r *rig) shell(prefix []string, dir string, argv ...string) string {
	r.t.Helper()
	argv = append(append([]string{}, prefix...), argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// create makes a workspace.
func (r *rig) create(o Options) *Workspace {
	r.t.Helper()
	w, err := r.tryCreate(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

func (r *rig) tryCreate(o Options) (*Workspace, error) {
	if o.Source == "" {
		o.Source = r.source
	}
	p, err := r.host.Prepare(r.ctx, o)
	if err != nil {
		return nil, err
	}
	return r.host.Create(r.ctx, p)
}

// in runs a shell command in a workspace, as an agent would.
func (r *rig) in(w *Workspace, script string) string {
	r.t.Helper()
	prefix, err := w.Enter(r.ctx, ".")
	if err != nil {
		r.t.Fatal(err)
	}
	return r.shell(prefix, w.Path(), "sh", "-ec", script)
}

func (r *rig) status(w *Workspace) *Status {
	r.t.Helper()
	s, err := w.Status(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// kinds are the kinds that work on this machine, for this user.
func (r *rig) kinds() map[string]Options {
	kinds := map[string]Options{
		"worktree": {Kind: Worktree}, "overlay": {Kind: Overlay}, "sparse": {Kind: Sparse, Sparse: []string{"src"}},
	}
	if (machine{}).reflink(r.host.Root) == nil {
		kinds["reflink"] = Options{Kind: Reflink}
	}
	return kinds
}

// each runs a test for each kind.
func each(t *testing.T, test func(r *rig, o Options)) {
	for name := range newRig(t).kinds() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			o := r.kinds()[name]
			o.Name = "fix-1"
			test(r, o)
		})
	}
}

func (r *rig) want(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
