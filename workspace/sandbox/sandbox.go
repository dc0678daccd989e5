package sandbox

import (
	"fmt"
	"time"
)

// Mechanism is what makes a sandbox.
type Mechanism string

// The mechanisms. Auto takes the first that works here and can enforce what is asked: bubblewrap, then namespaces.
const (
	Auto       Mechanism = ""
	Bubblewrap Mechanism = "bubblewrap" // the program bwrap, 0.6 or later
	Namespaces Mechanism = "namespaces" // user namespaces, made by this program; Linux 5.12 or later
)

// Net is how much of the network a command has.
type Net string

// The kinds of network.
const (
	NetHost     Net = "host"     // that of the machine; nothing is enforced. The zero value means the same
	NetLoopback Net = "loopback" // a loopback of its own, and the addresses of Config.Forward
	NetOff      Net = "off"      // a loopback of its own
)

// Config describes a sandbox. All paths are absolute.
type Config struct {
	// Argv is the command. Its first element is looked up in PATH of Env, inside the sandbox. Required.
	Argv []string
	// Env is the environment, as in os.Environ; PATH is completed by the folder of this program. Nothing is taken
	// out: what the caller leaves here, the command sees.
	Env []string
	// Dir is the working directory, and must be visible inside. Required.
	Dir string

	// Write lists trees that are visible and writable. A system directory, or a folder above one or above the home
	// directory, is refused. Symbolic links are resolved first.
	Write []string
	// Read lists further files and trees that are visible and read-only, such as tools in a home directory.
	Read []string
	// Protect lists paths below Write that stay read-only. A symbolic link on the way is refused, because the
	// command could have made it.
	Protect []string
	// Hide lists files and directories below Read or Write that appear as empty.
	Hide []string
	// Home is the home directory. It is private, empty, and lost at the end. Empty means HOME of Env.
	Home string
	// Overlays are mounted first, visible in this sandbox alone. Each At should be in Write, too.
	Overlays []Overlay

	// Net is the network, NetHost by default.
	Net Net
	// Forward lists the connections out of NetLoopback.
	Forward []Forward

	// Limits bound what the command may use.
	Limits Limits
	// Mechanism chooses one, Auto by default.
	Mechanism Mechanism
}

// Overlay is an overlayfs mount in the user namespace of the sandbox (Linux 5.11), so it keeps its marks in attributes
// user.overlay.*: never mount the same Upper in another way.
type Overlay struct {
	// Lower is the read-only base, Upper takes the changes, Work is an empty directory on Upper's file system.
	Lower, Upper, Work string
	// At is an existing directory.
	At string
}

// Forward connects an address inside to one outside.
type Forward struct{ Inside, Outside Address }

// Address is a network address: "tcp" with host:port, or "unix" with the path of a socket. Inside, tcp means
// 127.0.0.1 or ::1, and a socket must be in a private directory such as /run.
type Address struct{ Network, Address string }

// Limits bound a command; a zero field sets no limit. New fails if one cannot be enforced here.
type Limits struct {
	// Memory is in bytes, at least MinMemory. With a delegated cgroup it is that of all processes together,
	// else of each process (its writable private memory).
	Memory int64
	// Processes is how many processes and threads there may be at once.
	Processes int
	// CPUs is how many processors all processes may use together: 0.5 is half of one. It needs a cgroup.
	CPUs float64
	// CPUTime is processor time of each process, in whole seconds.
	CPUTime time.Duration
	// FileSize is the size in bytes of the largest file that the command may write.
	FileSize int64
	// Time is the time until all processes are asked to end; TimeGrace later they are killed.
	Time time.Duration
}

// MinMemory is the smallest limit of memory.
const MinMemory = 32 << 20

// TimeGrace is how long processes may take to end after Limits.Time.
const TimeGrace = 5 * time.Second

// ExitTime is the exit code after Limits.Time, as that of the program timeout.
const ExitTime = 124

// scratch is the size in bytes of each of /tmp, /var/tmp and the home directory inside.
const scratch = 1 << 30

// The codes of errors.
const (
	CodeUnavailable = "sandbox_unavailable" // no mechanism works here
	CodeUnenforced  = "limit_not_enforced"  // a limit cannot be enforced here
	CodePath        = "path_refused"        // a path of the configuration
	CodeConfig      = "config_refused"      // another field of it
	CodeSetup       = "setup_failed"        // making the sandbox failed; the command did not run
	CodeNotFound    = "command_not_found"   // the command is not visible inside; exit code 127
	CodeCannotRun   = "command_cannot_run"  // the command cannot be executed; exit code 126
)

// Error is a failure of the sandbox, not of the command.
type Error struct {
	// Code is one of the constants above.
	Code string
	// Text is one sentence without a final stop.
	Text string
	// Next is the step that helps; it may be empty.
	Next string
}

func (e *Error) Error() string {
	if e.Next == "" {
		return e.Text
	}
	return e.Text + ": " + e.Next
}

func refuse(code, next, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...), Next: next}
}

// Enforcement is what bounds one subject in one sandbox.
type Enforcement struct{ Subject, By string }

// Reached is a limit that a command has reached. Subject is that of the Enforcement.
type Reached struct{ Subject, Effect string }
