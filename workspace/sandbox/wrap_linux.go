package sandbox

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Wrap puts a command that was not started yet into a sandbox made by bubblewrap alone, without the processes of this
// program that [New] needs: it adds about 5 ms. Where bubblewrap is missing, namespaces are used as in New. It is for
// short commands of Interlock's own, such as git in a
// workspace. cfg has the paths and the network. The command, its environment and its folder are those of cmd, limits
// are those of ctx and of the command itself, and Forward, Overlays and Limits have no meaning here. Call done after
// the command has ended, or was not started.
//
// What is enforced is the same as with New: the same plan, no capability, the same filter of system calls. With NetOff
// the filter refuses all new sockets, which is faster than a network of its own. The end of cmd's process ends all
// processes inside.
func Wrap(cmd *exec.Cmd, cfg Config) (done func(), err error) {
	b, err := knownBubblewrap()
	if err != nil {
		return wrapNamespaces(cmd, cfg)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	plan, err := newPlan(&cfg, self, knownSecrets)
	if err != nil {
		return nil, err
	}
	rules, err := filterFile(cfg.Net == NetOff)
	if err != nil {
		return nil, err
	}
	done = func() {}
	net := cfg.Net
	if net == NetOff && rules != nil {
		net = NetHost
	}
	args := append([]string{b.path}, planArgs(&spec{Plan: plan, Net: net}, b.version)...)
	args = append(args, "--new-session", "--chdir", cmd.Dir)
	if rules != nil {
		done = func() { rules.Close() }
		args = append(args, "--seccomp", strconv.Itoa(controlFD+len(cmd.ExtraFiles)))
		cmd.ExtraFiles = append(slices.Clone(cmd.ExtraFiles), rules)
	}
	// The folder may exist inside alone.
	cmd.Args, cmd.Path, cmd.Err, cmd.Dir = slices.Concat(args, []string{"--"}, cmd.Args), b.path, nil, "/"
	return done, nil
}

// wrapNamespaces does it with the processes of this program, where bubblewrap is missing. It adds about 60 ms.
func wrapNamespaces(cmd *exec.Cmd, cfg Config) (done func(), err error) {
	cfg.Mechanism, cfg.Argv, cfg.Env, cfg.Dir = Namespaces, cmd.Args, cmd.Env, cmd.Dir
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.Err, cmd.Dir = s.Path(), s.Args(), s.Environ(), nil, "/"
	cmd.ExtraFiles = s.Files(nil, nil, nil)[3:]
	return func() { _ = s.Close() }, nil // the exit code tells a failure
}

// Wraps reports why Wrap does not work here; nil is that it does.
var Wraps = sync.OnceValue(func() error {
	_, err := knownBubblewrap()
	if err == nil || tryNamespaces() == nil {
		return nil
	}
	return err
})

// System reports whether a path is visible in each sandbox.
func System(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && slices.ContainsFunc(systemDirs, func(dir string) bool { return below(real, dir) })
}

// filterFile has the filter of system calls as bwrap reads it; nil on architectures without one.
func filterFile(noSockets bool) (*os.File, error) {
	arch, ok := auditArch()
	if !ok {
		return nil, nil
	}
	var text []byte
	for _, f := range filter(arch, noSockets) {
		text = binary.NativeEndian.AppendUint16(text, f.Code)
		text = append(text, f.Jt, f.Jf)
		text = binary.NativeEndian.AppendUint32(text, f.K)
	}
	fd, err := unix.MemfdCreate("interlock-filter", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "filter")
	if _, err := f.Write(text); err != nil {
		f.Close()
		return nil, err
	}
	_, err = f.Seek(0, 0)
	return f, err
}
