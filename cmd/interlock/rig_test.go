//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// rig is a server, and the commands that use it.
type rig struct {
	t      *testing.T
	server *launch.Server
	dir    string
	env    []string
}

func newRig(t *testing.T, args ...string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	r.server = launchtest.Start(t, launch.Config{DataDir: r.dir, Args: args})
	r.env = r.environment()
	return r
}

func (r *rig) environment() []string {
	return append(cleanEnvironment(), "INTERLOCK_URL=http://"+r.server.HTTP, "INTERLOCK_GRPC="+r.server.GRPC)
}

// cleanEnvironment is ours without what would configure a command. A full disk refuses no workspace.
func cleanEnvironment() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "INTERLOCK_") {
			env = append(env, v)
		}
	}
	return append(env, "INTERLOCK_CONFIG="+os.DevNull, "INTERLOCK_MIN_FREE=0", "NO_COLOR=1", "TZ=UTC", "LC_ALL=C.UTF-8")
}

// restart starts the server again on the same addresses and journal.
func (r *rig) restart() {
	r.t.Helper()
	r.server = launchtest.Start(
		r.t, launch.Config{DataDir: r.dir, Args: []string{"--http", r.server.HTTP, "--grpc", r.server.GRPC}},
	)
}

// do runs a command to its end.
func (r *rig) do(args ...string) (out string, code int) {
	r.t.Helper()
	p := r.start(args...)
	p.in.Close()
	return p.end()
}

// must is do for commands that have to succeed.
func (r *rig) must(args ...string) string {
	r.t.Helper()
	out, code := r.do(args...)
	if code != 0 {
		r.t.Fatalf("interlock %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// start starts a command.
func (r *rig) start(args ...string) *proc {
	r.t.Helper()
	return startProc(r.t, r.env, args...)
}

// proc is a command that runs. Its output, to either stream, is read line by line.
type proc struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed at the end
	all   strings.Builder
}

func startProc(t *testing.T, env []string, args ...string) *proc {
	t.Helper()
	p := &proc{t: t, cmd: exec.Command(launchtest.Binary(t), args...), lines: make(chan string, 1024)}
	p.cmd.Env = env
	// Ctrl-C in the terminal of go test is not for the commands that it tests.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	go func() {
		defer close(p.lines)
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			p.lines <- scan.Text()
		}
		out.Close()
	}()
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
	return p
}

// expect reads lines until one contains text, and returns it.
func (p *proc) expect(text string) string {
	p.t.Helper()
	timeout := time.After(busy.Patience())
	for {
		select {
		case line, more := <-p.lines:
			if !more {
				p.t.Fatalf("%s ended without saying %q; it said:\n%s", strings.Join(p.cmd.Args[1:], " "), text, p.all.String())
			}
			p.all.WriteString(line + "\n")
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			p.t.Fatalf("%s does not say %q; it said:\n%s", strings.Join(p.cmd.Args[1:], " "), text, p.all.String())
		}
	}
}

// end waits for the end and returns what the command wrote, and its exit code; 128+n after a
// signal.
func (p *proc) end() (out string, code int) {
	p.t.Helper()
	timeout := time.AfterFunc(busy.Patience(), func() { p.cmd.Process.Kill() })
	for line := range p.lines {
		p.all.WriteString(line + "\n")
	}
	p.cmd.Wait()
	if !timeout.Stop() {
		p.t.Fatalf("%s does not end; it said:\n%s", strings.Join(p.cmd.Args[1:], " "), p.all.String())
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return p.all.String(), cli.ExitSignal + int(status.Signal())
	}
	return p.all.String(), status.ExitStatus()
}

// ends waits for the end and checks the exit code.
func (p *proc) ends(want int) string {
	p.t.Helper()
	out, code := p.end()
	if code != want {
		p.t.Errorf("%s: exit code %d, want %d; it said:\n%s", strings.Join(p.cmd.Args[1:], " "), code, want, out)
	}
	return out
}

// keepTyping writes empty lines to the process until it has ended, so that none of its reads blocks.
func (p *proc) keepTyping() {
	for {
		if _, err := p.in.Write([]byte("\n")); err != nil {
			return
		}
	}
}

func (p *proc) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
