package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attack runs inside a sandbox and prints what it could do. It returns 0 if it could do nothing.
func attack(args []string) int {
	done := 0
	report := func(what string, err error) {
		if err == nil {
			fmt.Println("could", what)
			done = 1
		}
	}
	switch args[0] {
	case "kernel":
		kernel(report)
	case "init":
		init1(report)
	case "kill":
		pid, _ := strconv.Atoi(args[1])
		report("signal", unix.Kill(pid, 0))
		report("trace", unix.PtraceAttach(pid))
		_, err := os.Stat("/proc/" + args[1] + "/root" + args[2])
		report("see the root directory", err)
	case "dial":
		for _, address := range args[1:] {
			network, address, _ := strings.Cut(address, "=")
			conn, err := net.Dial(network, address)
			if err == nil {
				conn.Close()
			}
			report("connect to "+address, err)
		}
	case "fork":
		return fork(args[1])
	case "memory":
		return use(args[1])
	case "write":
		report("write "+args[1], os.WriteFile(args[1], []byte("attacked"), 0o644))
	case "search":
		search(args[1], report)
	}
	return done
}

// kernel tries system calls that reach beyond namespaces.
func kernel(report func(string, error)) {
	call := func(what string, number uintptr, args ...uintptr) {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 {
			report(what, nil)
		}
	}
	at := func(s string) uintptr { b := append([]byte(s), 0); return uintptr(unsafe.Pointer(&b[0])) }
	call("mount", unix.SYS_MOUNT, at("tmpfs"), at("/tmp"), at("tmpfs"), 0, 0)
	call("unmount", unix.SYS_UMOUNT2, at("/tmp"), unix.MNT_DETACH)
	call("unshare a user namespace", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	call("unshare mounts", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	call("read keys", unix.SYS_KEYCTL, 0, ^uintptr(2), 0) // KEYCTL_GET_KEYRING_ID of the session
	call("trace the kernel", unix.SYS_PERF_EVENT_OPEN, at("x"), 0, 0, ^uintptr(0), 0)
	call("set up io_uring", unix.SYS_IO_URING_SETUP, 1, at(strings.Repeat("\x00", 120)))
	call("open a socket to the host of virtual machines", unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	call("change the root directory", unix.SYS_CHROOT, at("/tmp"))
	call("set the host's name", unix.SYS_SETHOSTNAME, at("x"), 1)
	call("become another user", unix.SYS_SETUID, 1)
	call("raise a capability", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN)
	if err := exec.Command("unshare", "--user", "true").Run(); err == nil {
		report("run unshare", nil)
	}
	if pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil {
		defer pty.Close()
		x := byte('x')
		call("type into a terminal", unix.SYS_IOCTL, pty.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&x)))
	} else {
		fmt.Println("no terminal:", err)
	}
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory",
		"/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/dev/kmsg", "/dev/mem",
	} {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		report("open "+path, err)
		f.Close()
	}
	report("make a device", unix.Mknod("/tmp/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))))
}

// init1 tries to take over process 1, which keeps the time and the control socket.
func init1(report func(string, error)) {
	report("trace it", unix.PtraceAttach(1))
	f, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0)
	report("write its memory", err)
	f.Close()
	for _, fd := range []string{"0", "3", "4"} {
		f, err := os.Open("/proc/1/fd/" + fd)
		report("open its file "+fd, err)
		f.Close()
		_, err = os.Readlink("/proc/1/fd/" + fd)
		report("read the name of its file "+fd, err)
	}
	_, err = os.Stat("/proc/1/root/etc")
	report("enter by its root directory", err)
	if fd, err := unix.PidfdOpen(1, 0); err == nil {
		_, err = unix.PidfdGetfd(fd, 3, 0)
		report("take its control socket", err)
	}
	_ = unix.Kill(1, unix.SIGKILL) // does nothing, or ends this process, too
	for fd := 3; fd < 64; fd++ {
		if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil &&
			(strings.Contains(name, "interlock") || strings.HasPrefix(name, "socket")) {
			report("use file "+name, nil)
		}
	}
}

// search looks for a file with a secret in all that is visible, through /proc too.
func search(secret string, report func(string, error)) {
	_ = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && (path == "/usr" || path == "/opt" || strings.HasPrefix(path, "/proc/sys")):
			return fs.SkipDir
		case d.Name() == secret:
			report("find "+path, nil)
		}
		return nil
	})
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if file, err := os.ReadDir("/proc/self/fd/" + fd.Name() + "/.."); err == nil && len(file) > 0 {
			if _, err := os.Stat("/proc/self/fd/" + fd.Name() + "/../" + secret); err == nil {
				report("find it beside file "+fd.Name(), nil)
			}
		}
	}
}

// fork starts processes until it fails, prints their number, and ends.
func fork(most string) int {
	limit, _ := strconv.Atoi(most)
	count := 0
	for ; count < limit; count++ {
		if err := exec.Command("sleep", "1000").Start(); err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				fmt.Println(err)
			}
			break
		}
	}
	fmt.Println(count)
	return 0
}

// use takes memory in steps and touches it.
func use(size string) int {
	n, _ := strconv.Atoi(size)
	for got := 0; got < n; got += 1 << 20 {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			fmt.Println("refused")
			return 3
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	fmt.Println("got it")
	return 0
}
