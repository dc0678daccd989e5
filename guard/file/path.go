package file

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// metaName is the directory below the root in which contents are kept. tempName is
// the name that a new content has until it is whole: one in each directory, because
// there is one writer at a time, so that what a crash left is found and replaced.
// No segment of a path may begin so.
const (
	metaName = ".interlock"
	tempName = ".interlock.tmp"
)

// checkPath refuses a path that could name something else than a file of the root, or one file
// by two names: it is relative, with '/' between its segments, none of them empty, "." or "..",
// and has no character that cannot be seen. Files in git's own directories and ours are
// refused, in whatever case they are spelled.
func checkPath(path string) error {
	switch {
	case path == "":
		return refuse(interlock.CodeInvalidPath, "the path is empty")
	case len(path) > MaxPathBytes:
		return refuse(interlock.CodeInvalidPath, "the path has %d bytes, more than %d", len(path), MaxPathBytes)
	case !utf8.ValidString(path) || strings.ContainsFunc(path, invisible.Is):
		return refuse(interlock.CodeInvalidPath, "the path %q contains an invisible character", path)
	case !fs.ValidPath(path) || path == "." || !filepath.IsLocal(filepath.FromSlash(path)) ||
		strings.ContainsRune(path, '\\'):
		return refuse(
			interlock.CodeInvalidPath,
			"the path %q does not name a file below the root: want segments with / between them, and neither a first /, "+
				".. nor \\",
			path,
		)
	}
	for segment := range strings.SplitSeq(path, "/") {
		folded := strings.ToLower(strings.ToUpper(segment)) // as file systems fold that know no case
		if folded == ".git" || strings.HasPrefix(folded, metaName) {
			return refuse(interlock.CodeInvalidPath, "the path %q is inside %s, which is reserved", path, segment)
		}
	}
	return nil
}

// checkPath refuses a path that goes through a symbolic link, too, or that is one. os.Root
// keeps links from leaving the root; within it they would add a second name to a file, and a
// harmless one to git's directory.
func (d *Dir) checkPath(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	for end := 0; end < len(path); end++ {
		if i := strings.IndexByte(path[end:], '/'); i >= 0 {
			end += i
		} else {
			end = len(path)
		}
		info, err := d.root.Lstat(path[:end])
		switch last := end == len(path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, syscall.ENAMETOOLONG):
			return refuse(interlock.CodeInvalidPath, "the path %q has a segment that is too long for a file name", path)
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return refuse(interlock.CodeInvalidPath, "%q is a symbolic link: name the file itself", path[:end])
		case !last && !info.IsDir():
			return refuse(interlock.CodeInvalidPath, "%q is not a directory", path[:end])
		case last && !info.Mode().IsRegular():
			return refuse(interlock.CodeInvalidPath, "%q is not a regular file", path)
		}
	}
	return nil
}
