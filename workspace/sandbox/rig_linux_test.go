package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// nobodyID is the ordinary user of these tests, where they run as root.
const nobodyID = 65534

// binary is this test program, where every user may run it.
var binary string

func TestMain(m *testing.M) {
	sandbox.Main()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "harness":
			harness()
		case "attack":
			os.Exit(attack(os.Args[2:]))
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(binary, text, 0o755)); err != nil {
		panic(err)
	}
	return m.Run()
}

// result is how a sandbox ended.
type result struct {
	Code      int
	Err       *sandbox.Error
	Reached   []sandbox.Reached
	Mechanism sandbox.Mechanism
	Enforced  []sandbox.Enforcement
}

// harness is a caller of the package: it reads a configuration, runs it, and writes the result to its file 3.
func harness() {
	var cfg sandbox.Config
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		panic(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	var r result
	s, err := sandbox.New(cfg)
	if err == nil {
		r.Mechanism, r.Enforced = s.Mechanism(), s.Enforced()
		r.Code, err = s.Run(context.Background(), null, os.Stdout, os.Stderr)
		r.Reached = s.Reached(r.Code)
	}
	if err != nil {
		r.Err = err.(*sandbox.Error)
	}
	if err := json.NewEncoder(os.NewFile(3, "result")).Encode(r); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// world is a place with an own tree, another workspace, and a home directory with a key in it.
type world struct {
	dir, own, other, home string
	uid                   int
	mechanism             sandbox.Mechanism
}

// eachWorld runs a test with both mechanisms, as this user and as an ordinary one.
func eachWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	tools.Need(t, "bwrap")
	users := map[string]int{"user": os.Getuid()}
	if os.Getuid() == 0 {
		users = map[string]int{"root": 0, "nobody": nobodyID}
	}
	for user, uid := range users {
		for _, mechanism := range []sandbox.Mechanism{sandbox.Bubblewrap, sandbox.Namespaces} {
			t.Run(fmt.Sprintf("%s as %s", mechanism, user), func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, uid, mechanism))
			})
		}
	}
}

func newWorld(t *testing.T, uid int, mechanism sandbox.Mechanism) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		dir: dir, own: dir + "/work/own", other: dir + "/work/other", home: dir + "/home", uid: uid, mechanism: mechanism,
	}
	for _, path := range []string{w.own, w.other, w.home + "/.ssh"} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		w.own + "/file": "mine\n", w.other + "/file": "SECRET\n", w.home + "/.ssh/id_ed25519": "SECRET\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.chown(t)
	return w
}

// chown makes all of the world the user's.
func (w *world) chown(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	err := filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, w.uid, w.uid))
	})
	if err := errors.Join(err, os.Chmod(filepath.Dir(w.dir), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// config is a sandbox around the own tree.
func (w *world) config(argv ...string) sandbox.Config {
	return sandbox.Config{
		Argv: argv, Dir: w.own, Write: []string{w.own}, Mechanism: w.mechanism, Net: sandbox.NetOff,
		Env: []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin"},
	}
}

func (w *world) sh(script string) sandbox.Config { return w.config("sh", "-c", script) }

// attack is a sandbox in which an attack of this program runs.
func (w *world) attack(args ...string) sandbox.Config {
	return w.config(append([]string{"/run/interlock/bin/interlock", "attack"}, args...)...)
}

// start starts a harness with its own standard output. wait returns its result.
func (w *world) start(t *testing.T, cfg sandbox.Config, out io.Writer) (cmd *exec.Cmd, wait func() result) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	cmd = exec.CommandContext(ctx, binary, "harness")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), out, out
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{write}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	return cmd, func() (r result) {
		defer cancel()
		defer read.Close()
		decoded := json.NewDecoder(read).Decode(&r)
		if err := cmd.Wait(); err != nil || decoded != nil {
			t.Fatalf("the harness: %v, %v\n%s", err, decoded, out)
		}
		return r
	}
}

// run runs a sandbox and returns its output, standard error included.
func (w *world) run(t *testing.T, cfg sandbox.Config) (result, string) {
	t.Helper()
	var out bytes.Buffer
	_, wait := w.start(t, cfg, &out)
	r := wait()
	return r, strings.TrimSpace(out.String())
}

// wants runs a sandbox that must end with code 0 and an output.
func (w *world) wants(t *testing.T, cfg sandbox.Config, want string) {
	t.Helper()
	if r, out := w.run(t, cfg); r.Err != nil || r.Code != 0 || out != want {
		t.Errorf("got code %d, error %v, output %q, want 0 and %q", r.Code, r.Err, out, want)
	}
}
