package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// The own tree is writable at its own path, with private directories beside it, and nothing else is.
func TestOwnTree(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.wants(t, w.sh("pwd; cat file; echo new > file2; id -u; "+
			"for d in /tmp /run /var/tmp /dev/shm ~; do echo x > $d/x; done"),
			fmt.Sprintf("%s\nmine\n%d", w.own, w.uid))
		if text, err := os.ReadFile(w.own + "/file2"); err != nil || string(text) != "new\n" {
			t.Errorf("the file that the command wrote: %q, %v", text, err)
		}
		if entries, err := os.ReadDir(w.home); err != nil || len(entries) != 1 {
			t.Errorf("the home directory outside has %v, %v, want .ssh alone", entries, err)
		}
		r, out := w.run(t, w.sh("for d in / /usr /etc /var /dev /proc/sys /sys; do echo x > $d/x && echo wrote $d; done "+
			"2>/dev/null; true"))
		if r.Code != 0 || out != "" {
			t.Errorf("code %d, %q, want no place written", r.Code, out)
		}
	})
}

// Another workspace, the home directory and files for some users alone are out of reach, by links and /proc too.
func TestHidden(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, link := range [][2]string{
			{w.other, w.own + "/other"}, {w.home + "/.ssh/id_ed25519", w.own + "/key"}, {"../other/file", w.own + "/up"},
		} {
			if err := os.Symlink(link[0], link[1]); err != nil {
				t.Fatal(err)
			}
		}
		w.chown(t)
		r, out := w.run(t, w.sh(strings.Join([]string{
			"cat " + w.other + "/file", "cat other/file", "cat ~/.ssh/id_ed25519", "cat key", "cat up",
			"cat /proc/1/root" + w.other + "/file", "cat /proc/self/root" + w.other + "/file", "cat /etc/shadow",
			"cat /proc/*/cwd/../other/file", "ls /root /home " + w.dir + "/work/other", "cat /proc/1/environ",
			"cat /proc/kcore | head -c 16",
		}, "; ")))
		if strings.Contains(out, "SECRET") || strings.Contains(out, "root:") || r.Err != nil {
			t.Errorf("%v: %s", r.Err, out)
		}
		w.wants(t, w.attack("search", "id_ed25519"), "")
	})
}

// The kernel answers nothing that would reach outside, and process 1 is not the command's.
func TestKernel(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.wants(t, w.attack("kernel"), "")
		w.wants(t, w.attack("init"), "")
	})
}

// A setuid program gets no privilege.
func TestSetuid(t *testing.T) {
	if os.Getuid() != 0 {
		return // an ordinary user cannot make one
	}
	eachWorld(t, func(t *testing.T, w *world) {
		program := w.own + "/id"
		text, err := os.ReadFile("/usr/bin/id")
		if err != nil {
			t.Fatal(err)
		}
		// A process that another test starts meanwhile would keep the file open for writing until it is another program.
		syscall.ForkLock.RLock()
		err = errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(program, 0o755|os.ModeSetuid))
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		outside := exec.Command(program, "-u")
		outside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}}
		if out, err := outside.Output(); err != nil || string(out) != "0\n" {
			t.Fatalf("outside it prints %q, %v, want 0: the test proves nothing", out, err)
		}
		w.wants(t, w.sh("./id -u"), strconv.Itoa(w.uid))
	})
}

// A process outside, of the same user, cannot be seen, signalled or traced.
func TestOutsideProcess(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		victim := exec.Command("sleep", "1000")
		if os.Getuid() == 0 {
			victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}}
		}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = victim.Process.Kill()
			_ = victim.Wait()
		}()
		w.wants(t, w.attack("kill", strconv.Itoa(victim.Process.Pid), w.other), "")
		// Only the shell's own processes are in reach of a signal to all.
		w.run(t, w.sh("kill -9 -1"))
		if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
			t.Error("the process outside has ended:", err)
		}
	})
}

// echo answers each line on a listener, until the test ends.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// With a network of its own the command reaches nothing outside: not loopback, not an abstract socket.
func TestNetwork(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		tcp := echo(t, "tcp", "127.0.0.1:0")
		abstract := echo(t, "unix", "@"+w.dir)
		path := w.dir + "/socket"
		echo(t, "unix", path)
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, n := range []sandbox.Net{sandbox.NetOff, sandbox.NetLoopback} {
			cfg := w.attack("dial", "tcp="+tcp, "unix="+abstract, "unix="+path, "tcp=192.0.2.1:80", "udp=192.0.2.1:80")
			cfg.Net = n
			w.wants(t, cfg, "")
		}
		cfg := w.attack("dial", "tcp="+tcp, "unix="+abstract)
		cfg.Net = sandbox.NetHost
		if r, out := w.run(t, cfg); r.Code != 1 || strings.Count(out, "could") != 2 {
			t.Errorf("with the network of the machine: code %d, %q, want both connected", r.Code, out)
		}
		w.wants(t, w.sh("ip -o addr | grep -c inet"), "2") // a loopback of its own, for servers in tests
	})
}

// Forwarded addresses are reached, over tcp and a socket, and only those.
func TestForward(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		first, second := echo(t, "tcp", "127.0.0.1:0"), echo(t, "tcp", "127.0.0.1:0")
		socket := w.dir + "/s"
		echo(t, "unix", socket)
		if err := os.Chmod(socket, 0o777); err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(first)
		if err != nil {
			t.Fatal(err)
		}
		cfg := w.config("bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/`+port+`; echo hello >&3; read -r line <&3; echo $line
			{ cat /usr/bin/bash >&3; } & head -c $(stat -Lc %s /usr/bin/bash) <&3 | cmp - /usr/bin/bash && echo same
			python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/db/s")
s.sendall(b"by socket"); s.shutdown(1); print(s.recv(99).decode())
'`)
		cfg.Net = sandbox.NetLoopback
		cfg.Forward = []sandbox.Forward{
			{Inside: sandbox.Address{Network: "tcp", Address: first}, Outside: sandbox.Address{Network: "tcp", Address: first}},
			{
				Inside:  sandbox.Address{Network: "unix", Address: "/run/db/s"},
				Outside: sandbox.Address{Network: "unix", Address: socket},
			},
		}
		w.wants(t, cfg, "hello\nsame\nby socket")
		cfg.Argv = w.attack("dial", "tcp="+second, "unix="+socket).Argv
		w.wants(t, cfg, "")
	})
}

// The number of processes is bounded, or the sandbox is refused; the machine outside does not notice.
func TestForkBomb(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		limit := 40
		if w.uid == 0 {
			limit = 350
		}
		cfg := w.attack("fork", "1000")
		cfg.Limits.Processes = limit
		r, out := w.run(t, cfg)
		if w.uid == 0 && w.mechanism == sandbox.Bubblewrap && r.Err != nil {
			if r.Err.Code != sandbox.CodeUnenforced {
				t.Error(r.Err)
			}
			return
		}
		if n, err := strconv.Atoi(out); r.Err != nil || err != nil || n < limit/4 || n > limit {
			t.Errorf("%v: it started %s processes, want at most %d", r.Err, out, limit)
		}
		if len(r.Enforced) != 1 || r.Enforced[0].Subject != "processes" {
			t.Errorf("enforced: %v", r.Enforced)
		}
		cfg.Argv = []string{"bash", "-c", "b() { b | b & }; b & exec sleep 1000"} // which needs no process more
		cfg.Limits.Time = 500 * time.Millisecond
		if r, _ := w.run(t, cfg); r.Code != sandbox.ExitTime || !reached(r, "time") {
			t.Errorf("after a bomb: code %d, %v, want %d", r.Code, r.Err, sandbox.ExitTime)
		}
	})
}

// reached reports whether a command is known to have reached the limit of a subject, and no other limit.
func reached(r result, subject string) bool {
	return len(r.Reached) == 1 && r.Reached[0].Subject == subject
}

// Memory, the size of a file, processor time and time are bounded.
func TestLimits(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		cfg := w.attack("memory", strconv.Itoa(256<<20))
		w.wants(t, cfg, "got it")
		cfg.Limits.Memory = 128 << 20
		if r, out := w.run(t, cfg); r.Err != nil || r.Code == 0 || strings.Contains(out, "got it") {
			t.Errorf("memory: code %d, %v, %q, want it refused", r.Code, r.Err, out)
		}
		cfg = w.sh("exec 2>/dev/null; head -c 2000000 /dev/zero > big; stat -c %s big")
		cfg.Limits.FileSize = 1 << 20
		w.wants(t, cfg, "1048576")
		cfg = w.sh("while :; do :; done")
		cfg.Limits.CPUTime = time.Second
		if r, _ := w.run(t, cfg); r.Code != 128+int(syscall.SIGXCPU) || !reached(r, "cpu-time") {
			t.Errorf("processor time: %+v", r)
		}
		cfg = w.sh("trap '' XCPU; while :; do :; done")
		cfg.Limits.CPUTime = time.Second
		if r, _ := w.run(t, cfg); r.Code != 128+int(syscall.SIGKILL) {
			t.Errorf("processor time, and the signal ignored: %+v", r)
		}
		cfg = w.sh("exec 2>/dev/null; cat /dev/zero > big")
		cfg.Limits.FileSize, cfg.Limits.Time = 1<<20, time.Minute
		if r, _ := w.run(t, cfg); r.Code != 128+int(syscall.SIGXFSZ) || !reached(r, "file-size") {
			t.Errorf("a file: %+v", r)
		}
		cfg = w.sh("trap '' TERM; sleep 1000 & trap 'echo asked' TERM; wait; exit 7")
		cfg.Limits.Time = 3 * time.Second // until then a busy machine has set both traps
		if r, out := w.run(t, cfg); r.Code != sandbox.ExitTime || !reached(r, "time") || out != "asked" {
			t.Errorf("time: %+v, %q, want code %d", r, out, sandbox.ExitTime)
		}
	})
}

// Exit codes are the command's, and those of a shell where it could not run.
func TestExit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
			if r, out := w.run(t, w.sh(script)); r.Code != want || r.Err != nil {
				t.Errorf("%s: code %d, %v, %s, want %d", script, r.Code, r.Err, out, want)
			}
		}
		r, _ := w.run(t, w.config("no-such-command"))
		if r.Code != 127 || r.Err == nil || r.Err.Code != sandbox.CodeNotFound {
			t.Errorf("no such command: %+v", r)
		}
		r, _ = w.run(t, w.config("./file"))
		if r.Code != 126 || r.Err == nil || r.Err.Code != sandbox.CodeCannotRun {
			t.Errorf("not executable: %+v", r)
		}
		// What the command leaves behind ends with it.
		w.wants(t, w.sh("setsid sleep 1000 & echo left"), "left")
	})
}

// child returns the only child of a process.
func child(t *testing.T, parent int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			return pid
		}
	}
	t.Fatalf("process %d has no child", parent)
	return 0
}

// A signal to the group reaches the command, which ends in order.
func TestSignal(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		read, write := io.Pipe()
		cmd, wait := w.start(t, w.sh("trap 'echo got it; exit 9' TERM; sleep 1000 & echo ready; wait"), write)
		lines := bufio.NewScanner(read)
		lines.Scan()
		if err := syscall.Kill(-child(t, cmd.Process.Pid), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		if r := wait(); r.Code != 9 || lines.Text() != "got it" {
			t.Errorf("code %d, %q, want 9 and got it", r.Code, lines.Text())
		}
	})
}

// When the caller is killed, all processes end, also those that have left its group.
func TestCallerDies(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := w.start(t, w.sh("trap '' TERM HUP INT; setsid sleep 1000 & echo ready; sleep 1000"), write)
		write.Close()
		out := bufio.NewReader(read)
		if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatal(line, err)
		}
		if err := errors.Join(cmd.Process.Kill(), read.SetReadDeadline(time.Now().Add(busy.Patience()))); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if _, err := out.ReadByte(); err != io.EOF {
			t.Errorf("processes still have the output: %v", err)
		}
	})
}

// An overlay appears in the sandbox alone; its base stays as it is.
func TestOverlay(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, dir := range []string{"/lower/dir", "/upper", "/overlaywork"} {
			if err := os.MkdirAll(w.dir+dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(w.dir+"/lower/dir/base", []byte("base\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.chown(t)
		cfg := w.sh("cat dir/base; echo more >> dir/base; echo x > new; rm -r dir; ls")
		cfg.Overlays = []sandbox.Overlay{
			{Lower: w.dir + "/lower", Upper: w.dir + "/upper", Work: w.dir + "/overlaywork", At: w.own},
		}
		w.wants(t, cfg, "base\nnew")
		if text, err := os.ReadFile(w.dir + "/lower/dir/base"); err != nil || string(text) != "base\n" {
			t.Errorf("the base: %q, %v", text, err)
		}
		if text, err := os.ReadFile(w.own + "/file"); err != nil || string(text) != "mine\n" {
			t.Errorf("the mount point outside: %q, %v", text, err)
		}
		cfg.Argv = []string{"ls"}
		w.wants(t, cfg, "new")
	})
}

// Paths that would undo the sandbox are refused; read-only, protected and hidden paths are what they are called.
func TestPaths(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		cfg := w.sh("cat ../other/file; echo x 2>/dev/null > ../other/file || echo read-only; " +
			"echo x 2>/dev/null > hooks/x || echo protected; rm -rf hooks 2>/dev/null; ls hidden; cat ../other/secret 2>&1")
		for _, dir := range []string{"/hooks", "/hidden"} {
			if err := errors.Join(os.Mkdir(w.own+dir, 0o755), os.WriteFile(w.own+dir+"/a", nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(w.other+"/secret", []byte("SECRET"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.chown(t)
		cfg.Read = []string{w.other}
		cfg.Protect = []string{w.own + "/hooks", w.own + "/absent"}
		cfg.Hide = []string{w.own + "/hidden", w.other + "/secret", w.own + "/absent"}
		cfg.Argv[2] += "; true"
		w.wants(t, cfg, "SECRET\nread-only\nprotected\ncat: ../other/secret: Permission denied")
		if _, err := os.Stat(w.own + "/hooks/a"); err != nil {
			t.Error("the protected directory was emptied:", err)
		}
		if err := os.Symlink("/etc", w.own+"/link"); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*sandbox.Config){
			"/":                 func(c *sandbox.Config) { c.Write = []string{"/"} },
			"/usr/local":        func(c *sandbox.Config) { c.Write = []string{"/usr/local"} },
			"a link to /etc":    func(c *sandbox.Config) { c.Write = []string{w.own + "/link"} },
			"home":              func(c *sandbox.Config) { c.Write = []string{w.home} },
			"above home":        func(c *sandbox.Config) { c.Write = []string{w.dir} },
			"/tmp":              func(c *sandbox.Config) { c.Write = []string{"/tmp"} },
			"relative":          func(c *sandbox.Config) { c.Write = []string{"own"} },
			"read all":          func(c *sandbox.Config) { c.Read = []string{"/"} },
			"protect by a link": func(c *sandbox.Config) { c.Protect = []string{w.own + "/link/passwd"} },
			"protect outside":   func(c *sandbox.Config) { c.Protect = []string{w.other} },
			"options of overlay": func(c *sandbox.Config) {
				c.Overlays = []sandbox.Overlay{{Lower: "/a,upperdir=/etc", Upper: "/b", Work: "/c", At: "/d"}}
			},
		} {
			cfg := w.sh("true")
			change(&cfg)
			if r, _ := w.run(t, cfg); r.Err == nil || r.Err.Code != sandbox.CodePath {
				t.Errorf("%s: %+v, want it refused", name, r)
			}
		}
		cfg = w.sh("true")
		cfg.Dir = w.other
		if r, _ := w.run(t, cfg); r.Err == nil || r.Err.Code != sandbox.CodePath {
			t.Errorf("an invisible working directory: %+v, want it refused", r)
		}
	})
}
