package sandbox

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropPrivileges is for the thread that becomes the command: no capability, none by a program's owner or by file
// capabilities, also for user 0.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= 63; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break // beyond the last
		}
		if has == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && mayDrop() {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// mayDrop reports whether this thread may shrink its bounding set. Bubblewrap has taken that from an ordinary user,
// and then the set means nothing: no_new_privs keeps programs from getting any of it.
func mayDrop() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	return unix.Capget(&header, &now[0]) == nil && now[0].Effective&(1<<unix.CAP_SETPCAP) != 0
}

// The numbers of system calls that a command gets no permission for: they change the machine, reach outside by kernel
// objects that no namespace separates, or have been the way of too many escapes.
var refusedCalls = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_OPEN_BY_HANDLE_AT,
}

// missingCalls look as on an old kernel, so that programs use something else: their arguments are in memory, which the
// filter cannot read, or pass it by.
var missingCalls = []uint32{
	unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets of struct seccomp_data; both architectures are little-endian, so the low half of an argument is first.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArg0 = 16
	offsetArg1 = 24
)

const returnErrno = unix.SECCOMP_RET_ERRNO

// filterCalls installs the filter for this thread and what it becomes. There is none on other architectures.
func filterCalls() error {
	arch, ok := auditArch()
	if !ok {
		return nil
	}
	program := filter(arch, false)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(
		unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)),
	)
	if errno != 0 {
		return errno
	}
	return nil
}

func auditArch() (arch uint32, ok bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

func filter(arch uint32, noSockets bool) (p []unix.SockFilter) {
	load := func(offset uint32) {
		p = append(p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	answer := func(k uint32) { p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}) }
	// jump goes on with the next instruction if the test holds, else past skip instructions.
	jump := func(test uint16, k uint32, skip uint8) {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jf: skip, K: k})
	}
	load(offsetArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: arch})
	answer(returnErrno | uint32(unix.ENOSYS)) // the calls of 32-bit programs have other numbers
	load(offsetCall)
	if arch == unix.AUDIT_ARCH_X86_64 {
		jump(unix.BPF_JGE, 0x40000000, 1) // x32
		answer(returnErrno | uint32(unix.ENOSYS))
	}
	for _, call := range refusedCalls {
		jump(unix.BPF_JEQ, call, 1)
		answer(returnErrno | uint32(unix.EPERM))
	}
	if noSockets {
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 1)
		answer(returnErrno | uint32(unix.EAFNOSUPPORT))
	}
	for _, call := range missingCalls {
		jump(unix.BPF_JEQ, call, 1)
		answer(returnErrno | uint32(unix.ENOSYS))
	}
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		jump(unix.BPF_JEQ, call, 4)
		load(offsetArg0)
		jump(unix.BPF_JSET, newNamespaces, 1)
		answer(returnErrno | uint32(unix.EPERM))
		answer(unix.SECCOMP_RET_ALLOW)
	}
	// Sockets that no network namespace separates (of virtual machines), and the kernel's ciphers.
	jump(unix.BPF_JEQ, unix.SYS_SOCKET, 6)
	load(offsetArg0)
	jump(unix.BPF_JEQ, unix.AF_VSOCK, 1)
	answer(returnErrno | uint32(unix.EAFNOSUPPORT))
	jump(unix.BPF_JEQ, unix.AF_ALG, 1)
	answer(returnErrno | uint32(unix.EAFNOSUPPORT))
	answer(unix.SECCOMP_RET_ALLOW)
	// Input that the command types into the terminal would run in the shell outside.
	jump(unix.BPF_JEQ, unix.SYS_IOCTL, 6)
	load(offsetArg1)
	jump(unix.BPF_JEQ, unix.TIOCSTI, 1)
	answer(returnErrno | uint32(unix.EPERM))
	jump(unix.BPF_JEQ, tiocLinux, 1)
	answer(returnErrno | uint32(unix.EPERM))
	answer(unix.SECCOMP_RET_ALLOW)
	answer(unix.SECCOMP_RET_ALLOW)
	return p
}

// tiocLinux is TIOCLINUX: paste on the console.
const tiocLinux = 0x541c
