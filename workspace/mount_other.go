//go:build !linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

var errLinux = errors.New("it needs Linux")

func mountOverlay(string, string, string, string) error { return errLinux }

func unmount(string) error { return errLinux }

func enterPrefix(string, string, string, string, string) ([]string, error) { return nil, errLinux }

func mountsBelow(string) ([]string, error) { return nil, nil }

// machine is the prober of this machine.
type machine struct{}

func (machine) overlay(string) error  { return errLinux }
func (machine) rootless(string) error { return errLinux }

func (machine) reflink(root string) error {
	if runtime.GOOS != "darwin" {
		return errors.New("it needs Linux or macOS")
	}
	dir, err := os.MkdirTemp(root, ".try-*")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := errors.Join(os.Mkdir(from, 0o700), os.Mkdir(to, 0o700)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(from, "file"), []byte("x\n"), 0o600); err != nil {
		return err
	}
	return reflinkTree(context.Background(), from, to)
}

// reflinkTree copies what is in a folder into another one, by clonefile(2).
func reflinkTree(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "-c", "-R", "-p", from+"/.", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, out)
	}
	return nil
}
