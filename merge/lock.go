package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/interlockdev/interlock/internal/filelock"
)

// guardName is a file in the git directory that is locked, and never written.
//
//	shared      by each git that moves refs for a merger: it inherits the open file, so the lock lasts as long as
//	            that git, and whatever it has started, even if its merger was killed or is stopped
//	exclusive   while lock files are removed
//
// So a lock file that is there under the exclusive lock belongs to no git of a merger on this host. It is either left
// over, or of a program beside the boundary that moves the same ref, such as a push. Such a program has its lock for
// milliseconds, unless a hook reference-transaction holds it up: git itself waits no longer than 0.1 s for the lock of
// a ref. A lock file that is older than the merger's seat, by a margin, is therefore left over. Time decides only about
// programs beside the boundary; between mergers the kernel decides.
//
// The exclusive lock ends with the removal. A move of another merger meanwhile fails as [Locked], and is repeated.
const guardName = "interlock-merger"

// openGuard opens the file, and makes it if need be.
func (t *Target) openGuard(ctx context.Context) (*os.File, error) {
	common, err := t.commonDir(ctx)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(common, guardName), os.O_RDONLY|os.O_CREATE, 0o644)
}

// guard returns the file with the shared lock. A git that moves refs inherits it.
func (t *Target) guard(ctx context.Context) (*os.File, error) {
	f, err := t.openGuard(ctx)
	if err != nil {
		return nil, err
	}
	held, err := filelock.TryShared(f)
	if held {
		err = &Locked{t.Ref, "another merger removes lock files now"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// RemoveLocks removes the lock files that a killed git left at the refs that mergers move in this repository, and
// returns their names: those of the target, of its fence, and of the repository's id. A lock file that was changed at
// or after the time before stays: pass the time when the seat was taken, less the longest time that a push or a tool of
// an operator may have a ref locked. While a git runs that a merger on this host has started, all stay, and the error
// is a *[Locked].
//
// It removes none of packed-refs: no git of a merger takes that lock, and a move does not need it. On Windows, where
// git inherits no lock, it removes nothing.
func (t *Target) RemoveLocks(ctx context.Context, before time.Time) (removed []string, err error) {
	if err := t.check(); err != nil || t.Remote != "" || !inherits {
		return nil, err
	}
	common, err := t.commonDir(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	// Git locks HEAD, too, where that points to the ref.
	names := []string{filepath.Join(t.Repository.Dir, "HEAD")}
	for _, ref := range []string{t.Ref, FenceRef(t.Ref), IdentityRef} {
		names = append(names, filepath.Join(common, filepath.FromSlash(ref)))
	}
	for _, name := range names {
		if old, err := isOlder(name+".lock", before); err != nil {
			return nil, err
		} else if old {
			left = append(left, name+".lock")
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	guard, err := t.openGuard(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	if held, err := filelock.Try(guard); err != nil {
		return nil, err
	} else if held {
		return nil, &Locked{t.Ref, "a git that a merger has started still runs on this host"}
	}
	for _, name := range left {
		// A git may have ended since, and another one have made the file.
		old, err := isOlder(name, before)
		if err == nil && old {
			err = os.Remove(name)
		}
		if err != nil {
			return removed, fmt.Errorf("a lock file that a killed git left: %w", err)
		}
		if old {
			removed = append(removed, name)
		}
	}
	return removed, nil
}

// isOlder reports whether a file is there that was changed before a time.
func isOlder(name string, before time.Time) (bool, error) {
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.ModTime().Before(before), err
}

// inherited is what a git that moves refs gets of the guard.
func inherited(guard *os.File) []*os.File {
	if !inherits {
		return nil
	}
	return []*os.File{guard}
}

// inherits tells that a program inherits open files.
const inherits = runtime.GOOS != "windows"
