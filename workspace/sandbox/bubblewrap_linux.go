package sandbox

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// bubblewrapArgs translates the plan for bwrap 0.6 and later. Init is process 1.
func bubblewrapArgs(s *spec, version [2]int) []string {
	args := append([]string{s.Bwrap, "--as-pid-1"}, planArgs(s, version)...)
	return append(args, "--chdir", "/", "--", selfPath, argument, roleInit)
}

// planArgs are the arguments of bwrap that separate a command from the machine.
func planArgs(s *spec, version [2]int) []string {
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--cap-drop", "ALL",
	}
	if version[0] > 0 || version[1] >= 8 {
		args = append(args, "--disable-userns")
	}
	if s.Net != NetHost {
		args = append(args, "--unshare-net")
	}
	for _, e := range s.Plan {
		switch e.Kind {
		case kindDir:
			args = append(args, "--dir", e.At)
		case kindLink:
			args = append(args, "--symlink", e.To, e.At)
		case kindTmp:
			args = append(args, "--size", strconv.FormatInt(e.Size, 10), "--tmpfs", e.At)
		case kindRead:
			args = append(args, "--ro-bind", e.From, e.At)
		case kindWrite:
			args = append(args, "--bind", e.From, e.At)
		case kindNull:
			args = append(args, "--ro-bind", "/dev/null", e.At)
		case kindEmpty:
			args = append(args, "--size", "4096", "--tmpfs", e.At, "--remount-ro", e.At)
		case kindProc:
			args = append(args, "--proc", e.At)
			for _, name := range sealed {
				path := e.At + "/" + name
				args = append(args, "--ro-bind-try", path, path)
			}
		case kindDev:
			args = append(
				args, "--dev", e.At, "--size", strconv.Itoa(scratch), "--tmpfs", e.At+"/shm", "--remount-ro", e.At,
			)
		}
	}
	return append(args, "--remount-ro", "/")
}

// bubblewrap is the program and its version.
type bubblewrap struct {
	path    string
	version [2]int
}

// knownBubblewrap looks for bubblewrap once: it takes two runs of it.
var knownBubblewrap = sync.OnceValues(func() (b bubblewrap, err error) {
	b.path, b.version, err = findBubblewrap()
	return b, err
})

// findBubblewrap returns the program and its version, or why it cannot be used.
func findBubblewrap() (path string, version [2]int, err error) {
	path, err = exec.LookPath("bwrap")
	if err != nil {
		return "", version, refuse(CodeUnavailable, "install the package bubblewrap", "bubblewrap is not installed")
	}
	out, err := exec.Command(path, "--version").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) != 2 {
		return "", version, refuse(CodeUnavailable, "", "%s does not print its version", path)
	}
	for i, part := range strings.SplitN(words[1], ".", 3) {
		if i < 2 {
			version[i], _ = strconv.Atoi(part)
		}
	}
	if version[0] == 0 && version[1] < 6 {
		return "", version, refuse(CodeUnavailable, "install 0.6 or later", "bubblewrap %s is too old", words[1])
	}
	try := exec.Command(path, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")
	if out, err := try.CombinedOutput(); err != nil {
		return "", version, refuse(
			CodeUnavailable, "allow user namespaces for it", "bubblewrap does not work here: %s", firstLine(out, err),
		)
	}
	return path, version, nil
}

func firstLine(out []byte, err error) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); line != "" {
		return line
	}
	return err.Error()
}

// execBubblewrap becomes bwrap. Signals for the group are for the command; bwrap would end by them, and
// everything with it.
func execBubblewrap(s *spec) error {
	ignoreSignals()
	return execve(s.Bwrap, s.BwrapArgs, os.Environ())
}
