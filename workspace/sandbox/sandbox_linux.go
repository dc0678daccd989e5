package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sandbox is a command that is ready to be started, once. Start it with Path, Args, Environ and Files; then call
// Started, and Close when it has ended. Or call Run, which does all of that.
//
// Its exit code is the command's, 128 plus the signal that ended it, or ExitTime. The process group gets the
// signals and the terminal; send a signal to the group, not to the process.
type Sandbox struct {
	spec  spec
	self  string
	env   []string
	out   []Forward
	group *cgroup

	control, theirs, specFile *os.File // our end, and what the child gets
	forwards                  forwarder
	started                   bool
	done                      chan struct{} // closed when the control socket has ended

	mu      sync.Mutex
	err     *Error
	reached []Reached // all but those that the exit code tells
}

// New checks a configuration, chooses a mechanism and prepares the sandbox. Errors are an *Error.
func New(cfg Config) (*Sandbox, error) {
	s := &Sandbox{done: make(chan struct{})}
	if err := s.prepare(cfg); err != nil {
		s.Close()
		var e *Error
		if !errors.As(err, &e) {
			e = refuse(CodeSetup, "", "the sandbox cannot be made: %v", err)
		}
		return nil, e
	}
	return s, nil
}

func (s *Sandbox) prepare(cfg Config) error {
	if cfg.Net == "" {
		cfg.Net = NetHost
	}
	if cfg.Home == "" {
		cfg.Home = getenv(cfg.Env, "HOME")
	}
	if err := check(&cfg); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	plan, err := newPlan(&cfg, self, secrets)
	if err != nil {
		return err
	}
	s.self, s.out, s.env = self, cfg.Forward, withPath(cfg.Env)
	s.spec = spec{
		Plan: plan, Overlays: cfg.Overlays, Net: cfg.Net, Argv: cfg.Argv, Dir: cfg.Dir, Limits: cfg.Limits,
	}
	for _, f := range cfg.Forward {
		s.spec.Inside = append(s.spec.Inside, f.Inside)
	}
	if err := s.limit(findCgroups()); err != nil {
		return err
	}
	if err := s.choose(cfg.Mechanism); err != nil {
		return err
	}
	return s.files()
}

// check refuses what no mechanism can do.
func check(cfg *Config) error {
	config := func(format string, args ...any) error { return refuse(CodeConfig, "", format, args...) }
	l := cfg.Limits
	switch {
	case len(cfg.Argv) == 0 || cfg.Argv[0] == "":
		return config("there is no command")
	case !filepath.IsAbs(cfg.Dir):
		return config("the working directory %q is not absolute", cfg.Dir)
	case !slices.Contains([]Net{NetHost, NetLoopback, NetOff}, cfg.Net):
		return config("the network %q is not host, loopback or off", cfg.Net)
	case len(cfg.Forward) > 0 && cfg.Net != NetLoopback:
		return config("connections are forwarded with the network loopback alone")
	case len(cfg.Forward) > 32:
		return config("%d addresses are forwarded, at most 32 can be", len(cfg.Forward))
	case l.Memory < 0 || l.Processes < 0 || l.CPUs < 0 || l.CPUTime < 0 || l.FileSize < 0 || l.Time < 0:
		return config("a limit is below zero")
	case l.Memory > 0 && l.Memory < MinMemory:
		return config("the limit of memory is below %d bytes", MinMemory)
	case l.CPUTime > 0 && l.CPUTime < time.Second:
		return config("the limit of processor time is below a second")
	}
	for _, f := range cfg.Forward {
		host, _, err := net.SplitHostPort(f.Inside.Address)
		ip := net.ParseIP(host)
		tcp := f.Inside.Network == "tcp" && err == nil && ip != nil && ip.IsLoopback()
		unix := f.Inside.Network == "unix" && filepath.IsAbs(f.Inside.Address)
		if !tcp && !unix {
			return config("%s %q is not an address inside", f.Inside.Network, f.Inside.Address)
		}
	}
	for _, o := range cfg.Overlays {
		for _, path := range []string{o.Lower, o.Upper, o.Work, o.At} {
			if !filepath.IsAbs(path) || strings.ContainsAny(path, ",:\\\x00") {
				return refuse(CodePath, "", "the path %q cannot be used in an overlay", path)
			}
		}
	}
	return nil
}

// limit decides what enforces the limits: a cgroup for all that it can, else what remains in choose.
func (s *Sandbox) limit(tree cgroupTree) error {
	l := s.spec.Limits
	if l.Memory == 0 && l.Processes == 0 && l.CPUs == 0 {
		return nil
	}
	group, err := tree.make(l)
	if err == nil {
		s.group = group
		s.spec.Join, s.spec.GroupMemory, s.spec.GroupProcesses = true, l.Memory > 0, l.Processes > 0
		return nil
	}
	if l.CPUs > 0 {
		return refuse(
			CodeUnenforced, "leave out cpus, or delegate a cgroup (systemd-run --user --scope -p Delegate=yes)",
			"the number of processors cannot be limited: %v", err,
		)
	}
	// The kernel does not count the processes of root for its limit.
	s.spec.PIDMax = l.Processes > 0 && os.Getuid() == 0
	return nil
}

// choose takes the mechanism that was asked, or the first that works and can enforce the limits.
func (s *Sandbox) choose(asked Mechanism) error {
	var first error
	if asked == Bubblewrap || asked == Auto {
		path, version, err := findBubblewrap()
		if err == nil && s.spec.PIDMax {
			err = refuse(
				CodeUnenforced, "use namespaces or a delegated cgroup", "bubblewrap cannot limit the processes of root",
			)
		}
		if err == nil {
			s.spec.Mechanism, s.spec.Bwrap = Bubblewrap, path
			s.spec.BwrapArgs = bubblewrapArgs(&s.spec, version)
			return nil
		}
		if asked == Bubblewrap {
			return err
		}
		first = err
	}
	if asked != Auto && asked != Namespaces {
		return refuse(CodeConfig, "", "the mechanism %q is not bubblewrap or namespaces", asked)
	}
	if err := tryNamespaces(); err != nil {
		if first != nil {
			return refuse(CodeUnavailable, "", "there is no sandbox here: %v; %v", first, err)
		}
		return err
	}
	s.spec.Mechanism = Namespaces
	return nil
}

func (s *Sandbox) files() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return err
	}
	s.control, s.theirs = os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	// The kernel adds the sender's process id to each message, as it is outside.
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return err
	}
	s.specFile, err = s.spec.file()
	return err
}

// Path is the program to start.
func (s *Sandbox) Path() string { return s.self }

// Args are its arguments, with its name.
func (s *Sandbox) Args() []string { return []string{"interlock", argument, roleStart} }

// Environ is its environment.
func (s *Sandbox) Environ() []string { return s.env }

// Files are its files, with the three of the command first.
func (s *Sandbox) Files(stdin, stdout, stderr *os.File) []*os.File {
	return []*os.File{stdin, stdout, stderr, s.theirs, s.specFile}
}

// Mechanism is the one that was chosen.
func (s *Sandbox) Mechanism() Mechanism { return s.spec.Mechanism }

// Enforced lists how this sandbox enforces the limits that were asked.
func (s *Sandbox) Enforced() (list []Enforcement) {
	l := s.spec.Limits
	add := func(asked bool, subject, by string) {
		if asked {
			list = append(list, Enforcement{subject, by})
		}
	}
	memory, processes := "each process (RLIMIT_DATA)", "all processes of this user in the sandbox (RLIMIT_NPROC)"
	if s.spec.GroupMemory {
		memory = "all processes together (cgroup)"
	}
	switch {
	case s.spec.GroupProcesses:
		processes = "all processes (cgroup)"
	case s.spec.PIDMax:
		processes = "all processes, at least 301 (pid_max)"
	}
	add(l.Memory > 0, "memory", memory)
	add(l.Processes > 0, "processes", processes)
	add(l.CPUs > 0, "cpus", "all processes together (cgroup)")
	add(l.CPUTime > 0, "cpu-time", "each process (RLIMIT_CPU)")
	add(l.FileSize > 0, "file-size", "each file (RLIMIT_FSIZE)")
	add(l.Time > 0, "time", "all processes (ended by process 1 of the sandbox)")
	return list
}

// Started is called when the process has been started, or could not be. From then on the caller's part runs.
func (s *Sandbox) Started() {
	s.started = true
	s.theirs.Close()
	s.specFile.Close()
	go s.serve()
}

// serve answers the sandbox until it ends.
func (s *Sandbox) serve() {
	defer close(s.done)
	text, rest := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*64)+unix.CmsgSpace(unix.SizeofUcred))
	raw, err := s.control.SyscallConn()
	if err != nil {
		return
	}
	for {
		var n, more int
		var failed error
		_ = raw.Read(func(fd uintptr) bool {
			n, more, _, _, failed = unix.Recvmsg(int(fd), text, rest, unix.MSG_CMSG_CLOEXEC)
			return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
		})
		if failed != nil || n == 0 {
			return
		}
		var m message
		if json.Unmarshal(text[:n], &m) != nil {
			return // only our own processes have the other end
		}
		sender, fds := control(rest[:more])
		switch {
		case m.Listening:
			s.forwards.serve(s.out, fds)
		case m.Join:
			answer := "n"
			if s.group != nil && s.group.take(sender) == nil {
				answer = "y"
			}
			_, _ = s.control.Write([]byte(answer))
		case m.Time || m.Error != nil:
			s.mu.Lock()
			if m.Time {
				s.reached = append(s.reached, Reached{"time", "the command was ended"})
			}
			if s.err == nil {
				s.err = m.Error
			}
			s.mu.Unlock()
		}
	}
}

// control reads what the kernel adds to a message.
func control(rest []byte) (sender int, fds []int) {
	list, err := unix.ParseSocketControlMessage(rest)
	if err != nil {
		return 0, nil
	}
	for _, m := range list {
		if c, err := unix.ParseUnixCredentials(&m); err == nil {
			sender = int(c.Pid)
		} else if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
	}
	return sender, fds
}

// Reached lists the limits that the command has reached, as far as that can be known: memory and processes with a
// cgroup only, processor time and the size of a file from the command's exit code. Call it after Close.
func (s *Sandbox) Reached(code int) (list []Reached) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list = slices.Clone(s.reached)
	// A shell passes the code of its command on.
	switch l := s.spec.Limits; {
	case l.CPUTime > 0 && code == exitSignal+int(unix.SIGXCPU):
		list = append(list, Reached{"cpu-time", "a process was ended"})
	case l.FileSize > 0 && code == exitSignal+int(unix.SIGXFSZ):
		list = append(list, Reached{"file-size", "a process was ended"})
	}
	return list
}

// Close ends what is left of the sandbox, after the process was waited for. It returns an *Error if the command
// never ran.
func (s *Sandbox) Close() error {
	if s.started {
		// The sandbox has ended, so its last messages are there, and then the end of the socket. A process that
		// cannot be killed would keep it.
		select {
		case <-s.done:
		case <-time.After(time.Second):
		}
	}
	if s.control != nil {
		s.control.Close()
		s.theirs.Close()
	}
	if s.specFile != nil {
		s.specFile.Close()
	}
	s.forwards.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.group != nil {
		s.reached = append(s.reached, s.group.reached()...)
		s.group.remove()
		s.group = nil
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// Run starts the command, passes nothing on, waits for its end and closes the sandbox. The end of ctx kills it. It
// returns the exit code, or an *Error if the command never ran.
func (s *Sandbox) Run(ctx context.Context, stdin, stdout, stderr *os.File) (code int, err error) {
	cmd := exec.CommandContext(ctx, s.Path(), s.Args()[1:]...)
	cmd.Args[0], cmd.Env = s.Args()[0], s.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.ExtraFiles = s.Files(nil, nil, nil)[3:]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	s.Started()
	if err == nil {
		_ = cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		code = status.ExitStatus()
		if status.Signaled() {
			code = exitSignal + int(status.Signal())
		}
	}
	if failed := s.Close(); err == nil {
		err = failed
	}
	return code, err
}

func getenv(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// withPath adds the folder of this program to PATH.
func withPath(env []string) []string {
	path := getenv(env, "PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	env = slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return strings.HasPrefix(pair, "PATH=") })
	return append(env, fmt.Sprintf("PATH=%s:%s", path, selfDir))
}

// Available reports why each mechanism does not work here; nil is that it does.
func Available() map[Mechanism]error {
	_, _, err := findBubblewrap()
	return map[Mechanism]error{Bubblewrap: err, Namespaces: tryNamespaces()}
}
