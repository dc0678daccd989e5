package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// overlayOptions are the options of an overlay. With userxattr it works in a user namespace, but
// cannot rename a folder of the base.
func overlayOptions(lower, upper, work string, rootless bool) (string, error) {
	for _, path := range []string{lower, upper, work} {
		if strings.ContainsAny(path, `,:\"`) {
			return "", fmt.Errorf("its path has a comma, colon, quote or backslash")
		}
	}
	more := "redirect_dir=on"
	if rootless {
		more = "userxattr"
	}
	return "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work + "," + more, nil
}

func mountOverlay(lower, upper, work, tree string) error {
	options, err := overlayOptions(lower, upper, work, false)
	if err != nil {
		return err
	}
	if err := unix.Mount("interlock", tree, "overlay", 0, options); err != nil {
		return plain(err)
	}
	return nil
}

func unmount(tree string) error {
	err := unix.Unmount(tree, 0)
	if errors.Is(err, unix.EBUSY) {
		return problem(CodeUnsubmitted, "a program still works in %s: end it first", tree)
	}
	return err
}

// plain names the usual refusals of a mount.
func plain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return errors.New("this user may not mount")
	case errors.Is(err, unix.EINVAL):
		return errors.New("the file system cannot be the upper one of an overlay")
	case errors.Is(err, unix.ENODEV):
		return errors.New("the kernel has no overlayfs")
	}
	return err
}

// enterScript runs in a user namespace as its root, mounts, and then runs a command as the user again.
// All of it is one process, so signals and job control reach the command.
const enterScript = `mount -t overlay interlock -o "$1" -- "$2" && cd -- "$2/$3" && u=$4 g=$5 && shift 5 &&
exec unshare --user --map-user="$u" --map-group="$g" -- "$@"`

// enterPrefix is what to put before a command so that it sees the tree of a rootless overlay, in the
// folder of the tree that is named.
func enterPrefix(lower, upper, work, tree, folder string) ([]string, error) {
	options, err := overlayOptions(lower, upper, work, true)
	if err != nil {
		return nil, err
	}
	return []string{
		"unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c", enterScript, "sh", options, tree, folder,
		fmt.Sprint(os.Getuid()), fmt.Sprint(os.Getgid()),
	}, nil
}

// mountsBelow lists what is mounted at a folder or below it.
func mountsBelow(dir string) (list []string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if at := unescape.Replace(fields[4]); at == dir || strings.HasPrefix(at, dir+"/") {
			list = append(list, at)
		}
	}
	return list, nil
}

// machine is the prober of this machine.
type machine struct{}

// try makes folders for an overlay below root and hands them to a function.
func try(root string, do func(lower, upper, work, tree string) error) error {
	dir, err := os.MkdirTemp(root, ".try-*")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	paths := [4]string{}
	for i, name := range []string{"lower", "upper", "work", "tree"} {
		paths[i] = filepath.Join(dir, name)
		if err := os.Mkdir(paths[i], 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(paths[0], "file"), []byte("lower\n"), 0o600); err != nil {
		return err
	}
	return do(paths[0], paths[1], paths[2], paths[3])
}

func (machine) overlay(root string) error {
	if os.Geteuid() != 0 {
		return errors.New("only root may mount")
	}
	if mounted, err := mountsBelow(root); err == nil && len(mounted) > 0 {
		return nil // those of other workspaces
	}
	return try(root, func(lower, upper, work, tree string) error {
		if err := mountOverlay(lower, upper, work, tree); err != nil {
			return err
		}
		defer func() { _ = unix.Unmount(tree, unix.MNT_DETACH) }()
		return os.WriteFile(filepath.Join(tree, "file"), []byte("upper\n"), 0o600)
	})
}

func (machine) rootless(root string) error {
	return try(root, func(lower, upper, work, tree string) error {
		prefix, err := enterPrefix(lower, upper, work, tree, ".")
		if err != nil {
			return err
		}
		argv := append(prefix, "sh", "-c", "echo upper > file")
		out, err := exec.CommandContext(context.Background(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	})
}

func (machine) reflink(root string) error {
	return try(root, func(lower, _, _, tree string) error {
		return reflinkTree(context.Background(), lower, tree)
	})
}

// reflinkTree copies what is in a folder into another one, sharing its blocks.
func reflinkTree(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=always", "--", from+"/.", to).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "not supported") || strings.Contains(string(out), "nvalid cross-device") {
			return errors.New("the file system shares no blocks")
		}
		return fmt.Errorf("%w: %.300s", err, out)
	}
	return nil
}
