package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// includeFile has patterns in the syntax of .gitignore, at the top of the user's checkout. Claude Code and Codex read
// it, too: files that match one, and that git ignores, come along.
const includeFile = ".worktreeinclude"

// Bounds of the files that come along without a flag that names them.
const (
	maxLocalFiles = 10_000
	maxLocalBytes = 1 << 30
	maxPatterns   = 1 << 20 // bytes
)

// localFiles lists the files of the user's checkout that come along: those of .worktreeinclude, and Options.Local.
// None is in the commit Start.
func (w *Workspace) localFiles(ctx context.Context, p *Plan) ([]string, error) {
	s := p.source
	if s.tree == "" {
		return nil, nil
	}
	paths, err := s.matching(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range p.opts.Local {
		if exists(filepath.Join(s.tree, path)) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if paths, err = w.notIn(ctx, paths); err != nil {
		return nil, err
	}
	if len(paths) > maxLocalFiles {
		return nil, problem(
			CodeInclude, "%s matches %d files, more than %d: narrow its patterns, or --share their folder", includeFile,
			len(paths), maxLocalFiles,
		)
	}
	size := int64(0)
	for _, path := range paths {
		if info, err := os.Stat(filepath.Join(s.tree, path)); err == nil {
			size += info.Size()
		}
		if size > maxLocalBytes {
			return nil, problem(
				CodeInclude, "%s matches more than %d MiB, up to %s: narrow its patterns, or --share their folder",
				includeFile, maxLocalBytes>>20, path,
			)
		}
	}
	return paths, nil
}

// matching lists the files that match .worktreeinclude and that git ignores.
func (s *source) matching(ctx context.Context) ([]string, error) {
	file := filepath.Join(s.tree, includeFile)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPatterns {
		return nil, problem(
			CodeInclude, "%s is no file of patterns of at most %d bytes: repair or remove it", file, maxPatterns,
		)
	}
	r := s.here()
	r.Config = append(s.plain(), "core.excludesFile="+s.userFile("core.excludesfile", "ignore"))
	matched, err := r.Output(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+file)
	if err != nil || matched == "" {
		return nil, err
	}
	paths, err := ignored(ctx, r, strings.Split(strings.TrimSuffix(matched, "\x00"), "\x00"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(paths, func(path string) bool { // a repository inside ends with a slash
		return path == "" || strings.HasSuffix(path, "/") || !filepath.IsLocal(path)
	}), nil
}

// notIn leaves out the paths that are in the commit Start, or below a file of it.
func (w *Workspace) notIn(ctx context.Context, paths []string) (list []string, err error) {
	var in strings.Builder
	ask := func(path string) { in.WriteString(w.Start + ":" + path + "\n") }
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.ContainsAny(path, "\n") })
	for _, path := range paths {
		for ask(path); strings.Contains(path, "/"); {
			path = path[:strings.LastIndexByte(path, '/')]
			ask(path)
		}
	}
	r := git.Repository{Dir: w.GitDir()}
	out, err := r.Feed(ctx, []byte(in.String()), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, err
	}
	answers := strings.Split(out, "\n")
	for _, path := range paths {
		n := 1 + strings.Count(path, "/")
		if len(answers) < n {
			return nil, errors.New("git cat-file answered too little")
		}
		free := strings.HasSuffix(answers[0], "missing")
		for _, above := range answers[1:n] {
			free = free && (above == "tree" || strings.HasSuffix(above, "missing"))
		}
		if answers = answers[n:]; free {
			list = append(list, path)
		}
	}
	return list, nil
}

// bring copies the included and the local files, and links the shared folders, into the folder of the tree's files. The
// folder tracked has the files of the commit, with their .gitignore.
func (w *Workspace) bring(ctx context.Context, s *source, into, tracked string, local []string) error {
	if len(w.Include)+len(w.Share)+len(local) == 0 {
		return nil
	}
	shown, err := w.unignored(ctx, tracked, append(slices.Clone(w.Include), local...))
	if err != nil {
		return err
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
		if shown[path] {
			return problem(
				CodeInclude, "%s is not ignored in this branch, and would be submitted: ignore it there, or leave it out", path,
			)
		}
		if err := copyInto(from, to, path); err != nil {
			return problem(CodeInclude, "%s cannot be included: %v", path, err)
		}
	}
	for _, path := range local {
		why := "it is not ignored in this branch, and would be submitted"
		if !shown[path] {
			if why, err = copyLocal(from, to, path); err != nil {
				return problem(CodeInclude, "%s cannot be copied: %v", path, err)
			}
		}
		if why != "" {
			w.Notes = append(w.Notes, path+" is not copied: "+why)
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

// unignored returns which of the paths git would show in the tree, though the private git directory excludes them: a
// .gitignore is stronger.
func (w *Workspace) unignored(ctx context.Context, tracked string, paths []string) (map[string]bool, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	r := git.Repository{Dir: w.GitDir(), WorkTree: tracked}
	hidden, err := ignored(ctx, &r, paths)
	shown := map[string]bool{}
	for _, path := range paths {
		shown[path] = true
	}
	for _, path := range hidden {
		delete(shown, path)
	}
	return shown, err
}

// ignored returns those of the paths that git ignores, tracked ones included.
func ignored(ctx context.Context, r *git.Repository, paths []string) (list []string, err error) {
	// The command knows no literal paths. What begins so has no magic.
	const here = "./"
	result, err := r.Run(ctx, git.Call{
		Args: []string{"check-ignore", "-z", "--stdin", "--no-index"}, Answers: []int{1},
		In:  strings.NewReader(here + strings.Join(paths, "\x00"+here) + "\x00"),
		Env: []string{"GIT_LITERAL_PATHSPECS=0"},
	})
	if err != nil {
		return nil, err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(result.Out), "\x00"), "\x00") {
		list = append(list, strings.TrimPrefix(path, here))
	}
	return list, nil
}

// copyLocal copies a file, and the file that a symbolic link in the checkout leads to. It returns why it did not.
func copyLocal(from, to *os.Root, path string) (why string, err error) {
	info, err := from.Stat(path)
	switch {
	case err != nil:
		return "it leads out of the repository, or to nothing", nil
	case !info.Mode().IsRegular():
		return "it is no file", nil
	}
	if err := to.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err = copyFile(from, to, path, info.Mode().Perm()); errors.Is(err, fs.ErrExist) {
		err = nil // --include has brought it
	}
	return "", err
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
