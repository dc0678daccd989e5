package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// enterRoot makes the plan the root directory of this process, which is process 1 of new namespaces with all
// capabilities in them.
func enterRoot(s *spec) error {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	if err := mountOverlays(s.Overlays); err != nil {
		return err
	}
	// A tmpfs holds two directories: old, where sources are found, and new, the root to be.
	const base = "/tmp"
	if err := mountTmp(base, 1<<20); err != nil {
		return err
	}
	for _, dir := range []string{base + "/old", base + "/new"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(base, base+"/old"); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := mountTmp("/new", 16<<20); err != nil {
		return err
	}
	for _, e := range s.Plan {
		if err := e.mount("/old", "/new"); err != nil {
			return fmt.Errorf("%s %s: %w", e.Kind, e.At, err)
		}
		if e.Kind == kindProc {
			if err := sealProc("/new"+e.At, s); err != nil {
				return err
			}
		}
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := readOnly("/new", false); err != nil {
		return err
	}
	if err := os.Chdir("/new"); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if s.Net != NetHost {
		return loopbackUp()
	}
	return nil
}

func mountOverlays(list []Overlay) error {
	for _, o := range list {
		// In a user namespace the attributes trusted.* cannot be written, by root neither.
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", o.Lower, o.Upper, o.Work)
		if err := unix.Mount("overlay", o.At, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return refuse(CodeSetup, "use a workspace of another kind", "the overlay at %s cannot be mounted: %v", o.At, err)
		}
	}
	return nil
}

func mountTmp(at string, size int64) error {
	options := "mode=0755,size=" + strconv.FormatInt(size, 10)
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount a private directory: %w", err)
	}
	return nil
}

// readOnly makes a mount read-only, and all below it if it is asked.
func readOnly(at string, all bool) error {
	return attributes(at, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, all)
}

func attributes(at string, set uint64, all bool) error {
	flags := uint(unix.AT_SYMLINK_NOFOLLOW)
	if all {
		flags |= unix.AT_RECURSIVE
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, at, flags, &unix.MountAttr{Attr_set: set}); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return nil
}

// mount makes one entry of the plan. Only the plan has written to the new root, so it has no links but those of the
// plan; sources were resolved, and a link that has appeared since is refused by the kernel's answer to openat2.
func (e entry) mount(old, root string) error {
	at := root + e.At
	switch e.Kind {
	case kindDir:
		return os.MkdirAll(at, 0o755)
	case kindLink:
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return os.Symlink(e.To, at)
	case kindTmp:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		return mountTmp(at, e.Size)
	case kindRead:
		if err := bind(old+e.From, at, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
		return readOnly(at, true)
	case kindWrite:
		return bind(old+e.From, at, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	case kindNull:
		return bind(old+"/dev/null", at, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
	case kindEmpty:
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := mountTmp(at, 4096); err != nil {
			return err
		}
		return readOnly(at, false)
	case kindProc:
		return mountProc(at)
	case kindDev:
		return makeDev(old, at)
	}
	return fmt.Errorf("unknown kind %q", e.Kind)
}

// bind makes from appear at a path, with what is mounted below it.
func bind(from, at string, set uint64) error {
	source, err := unix.Openat2(unix.AT_FDCWD, from, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: from, Err: err}
	}
	defer unix.Close(source)
	var stat unix.Stat_t
	if err := unix.Fstat(source, &stat); err != nil {
		return err
	}
	if err := mountPoint(at, stat.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	tree, err := unix.OpenTree(
		source, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
	)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return attributes(at, set, true)
}

// mountPoint makes what a mount covers, unless it is there.
func mountPoint(at string, dir bool) error {
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// mountProc shows the processes inside alone.
func mountProc(at string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	return unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// sealed are the files of /proc that the user root of the machine may write without any capability.
var sealed = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"}

// sealProc sets what is set there, and then makes read-only what root of the machine could still set.
func sealProc(at string, s *spec) error {
	if s.PIDMax {
		// The processes of init count, too. The kernel refuses less than 301.
		most := strconv.Itoa(max(s.Limits.Processes+threads(1), 301))
		if err := os.WriteFile(at+"/sys/kernel/pid_max", []byte(most), 0); err != nil {
			return refuse(CodeUnenforced, "use a delegated cgroup", "the number of processes cannot be limited: %v", err)
		}
	}
	for _, name := range sealed {
		path := filepath.Join(at, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := bind(path, path, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// makeDev has the devices that every program may use, and terminals of its own.
func makeDev(old, at string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := mountTmp(at, 1<<20); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bind(old+"/dev/"+name, at+"/"+name, unix.MOUNT_ATTR_NOSUID); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for link, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(to, filepath.Join(at, link)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/pts", "/shm"} {
		if err := os.Mkdir(at+dir, 0o755); err != nil {
			return err
		}
	}
	options := "newinstance,ptmxmode=0666,mode=620"
	if err := unix.Mount("devpts", at+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	if err := mountTmp(at+"/shm", scratch); err != nil {
		return err
	}
	return readOnlyDevices(at)
}

// readOnlyDevices keeps new files out of /dev. The devices are mounts of their own.
func readOnlyDevices(at string) error {
	return attributes(at, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID, false)
}

// loopbackUp starts the loopback of a new network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("start the loopback: %w", err)
	}
	return nil
}
