package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/interlockdev/interlock/internal/git"
)

// checkPaths refuses paths that are not below the tree, or that git tracks.
func (w *Workspace) checkPaths(ctx context.Context, s *source, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if s.tree == "" {
		return problem(
			CodeInclude,
			"%s is a bare repository, so it has no files to include or share: use --repo with a checkout", s.dir,
		)
	}
	r := git.Repository{Dir: w.GitDir()}
	for i, path := range paths {
		path = filepath.Clean(path)
		if !filepath.IsLocal(path) || path == "." || filepath.ToSlash(path) == ".git" {
			return problem(CodeInclude, "%q is not below the repository: name a path relative to its top folder", path)
		}
		tracked, err := r.Output(ctx, "ls-tree", "--name-only", w.Start, filepath.ToSlash(path))
		if err != nil {
			return err
		}
		if tracked != "" {
			return problem(CodeInclude, "%s is in the repository already: include and share what git ignores", path)
		}
		paths[i] = path
	}
	return nil
}

// bring copies the included files and links the shared folders into the folder of the tree's files.
func (w *Workspace) bring(s *source, into string) error {
	if len(w.Include)+len(w.Share) == 0 {
		return nil
	}
	from, err := os.OpenRoot(s.tree)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, path := range w.Include {
		if err := copyInto(from, to, path); err != nil {
			return problem(CodeInclude, "%s cannot be included: %v", path, err)
		}
	}
	for _, path := range w.Share {
		// A cache that is not there yet is shared by the first that needs it.
		if err := from.MkdirAll(path, 0o755); err != nil {
			return problem(CodeInclude, "%s cannot be shared: %v", path, err)
		}
		if err := to.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return problem(CodeInclude, "%s cannot be shared: %v", path, err)
		}
		if err := to.Symlink(filepath.Join(s.tree, path), path); err != nil {
			return problem(CodeInclude, "%s cannot be shared: %v", path, err)
		}
	}
	return nil
}

// copyInto copies a file, a symbolic link, or a folder. Neither end can be led out of its root by a
// symbolic link.
func copyInto(from, to *os.Root, path string) error {
	if err := to.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return fs.WalkDir(from.FS(), filepath.ToSlash(path), func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch at := filepath.FromSlash(name); {
		case e.IsDir():
			if err := to.Mkdir(at, info.Mode().Perm()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			return nil
		case e.Type() == fs.ModeSymlink:
			link, err := from.Readlink(at)
			if err != nil {
				return err
			}
			return to.Symlink(link, at)
		case e.Type().IsRegular():
			return copyFile(from, to, at, info.Mode().Perm())
		default:
			return nil // sockets, pipes
		}
	})
}

func copyFile(from, to *os.Root, path string, mode fs.FileMode) error {
	in, err := from.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
