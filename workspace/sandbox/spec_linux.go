package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files of each process of ours, after the three of the command.
const (
	controlFD = 3 // a socket to the caller
	specFD    = 4 // the spec
)

// argument is the first argument of this program when it runs a sandbox; the role follows.
const argument = "interlock:sandbox"

const (
	roleStart   = "start"
	roleOverlay = "overlay" // mounts overlays for bubblewrap
	roleInit    = "init"
	roleExec    = "exec"
	roleTry     = "try" // ends: namespaces can be made
)

// spec is what the caller's side has decided, for the processes that carry it out.
type spec struct {
	Mechanism Mechanism
	Bwrap     string // the program
	BwrapArgs []string
	Plan      []entry
	Overlays  []Overlay
	Net       Net
	Inside    []Address // where init listens
	Argv      []string
	Dir       string
	Limits    Limits
	// GroupMemory and GroupProcesses mean that a cgroup limits them; Join that exec asks the caller to move it there.
	GroupMemory, GroupProcesses, Join bool
	// PIDMax means that the number of processes is limited by that of process ids.
	PIDMax bool
}

func (s *spec) file() (*os.File, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("interlock-sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "spec")
	if _, err := f.Write(text); err != nil {
		f.Close()
		return nil, err
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the specification: %w", err)
	}
	return f, nil
}

func readSpec() (*spec, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(specFD, &stat); err != nil {
		return nil, refuse(CodeConfig, "use interlock workspace run", "this command is for the sandbox alone")
	}
	text := make([]byte, stat.Size)
	if _, err := unix.Pread(specFD, text, 0); err != nil {
		return nil, err
	}
	s := new(spec)
	return s, json.Unmarshal(text, s)
}

// handOn are the files of this process, for the next one. They are closed with the process alone.
var handOn = sync.OnceValue(func() []*os.File {
	return []*os.File{
		os.Stdin, os.Stdout, os.Stderr, os.NewFile(controlFD, "control"), os.NewFile(specFD, "specification"),
	}
})

// message goes from the processes of the sandbox to the caller.
type message struct {
	// Listening comes with the listeners of spec.Inside.
	Listening bool `json:",omitempty"`
	// Join asks to move the sender, and waits for a byte.
	Join bool `json:",omitempty"`
	// Time is sent when the time is over.
	Time  bool   `json:",omitempty"`
	Error *Error `json:",omitempty"`
}

func send(m message, fds ...int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(controlFD, text, rights, nil, unix.MSG_NOSIGNAL)
}

// fail tells the caller why the command does not run, and ends this process.
func fail(code int, err error) {
	e, ok := err.(*Error)
	if !ok {
		e = refuse(CodeSetup, "", "the sandbox cannot be made: %v", err)
	}
	if send(message{Error: e}) != nil {
		fmt.Fprintln(os.Stderr, "interlock:", e)
	}
	os.Exit(code)
}

// forCommand are the signals that the process group gets for the sake of the command.
var forCommand = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGALRM,
}

// ignoreSignals is inherited by a program that this process becomes.
func ignoreSignals() { signal.Ignore(forCommand...) }

// dropSignals keeps this process alive, and leaves the defaults to those it starts.
func dropSignals() { signal.Notify(make(chan os.Signal, 1), forCommand...) }

// execve replaces this process; its own files are closed if they are marked.
func execve(path string, argv, env []string) error {
	return &os.PathError{Op: "exec", Path: path, Err: unix.Exec(path, argv, env)}
}
