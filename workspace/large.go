package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/lfs"
)

// Objects of Git LFS go with a submission:
//
//	workspace  git/lfs/objects ──► the store of the upstream, if it is on this machine
//	                          └──► that of the source, else of the vault ── git lfs push ──► another machine
//
// largeStore is where the source has objects of Git LFS.
func (s *source) largeStore() string { return lfs.Store(s.dir, inHome(s.setting("lfs.storage"))) }

// large reads what is at paths of Git LFS in the commits of a range. No agent writes the git directory. used has the
// driver of each path.
func (c *conversions) large(
	ctx context.Context, r *git.Repository, used map[string]string, revs ...string,
) (*lfs.Blobs, error) {
	if len(used) == 0 {
		return new(lfs.Blobs), nil
	}
	return lfs.Read(ctx, r, func(path string) bool {
		driver := used[path]
		d := c.driver(driver)
		return driver == lfs.Driver || d != nil && d.isLFS()
	}, revs...)
}

// brought lists the pointers that the commits of a submission bring.
func (c *conversions) brought(ctx context.Context, v *git.Repository, head, base string) ([]lfs.Pointer, error) {
	blobs, err := broughtBlobs(ctx, v, head, base)
	if err != nil {
		return nil, err
	}
	used, err := c.usedAt(ctx, v.Dir, head, slices.Sorted(maps.Keys(blobs)))
	if err != nil {
		return nil, err
	}
	large, err := c.large(ctx, v, used, head, "^"+base)
	if err != nil {
		return nil, err
	}
	return large.Pointers, nil
}

// carry copies the objects of pointers out of the workspace into a store. It returns those that no store has.
func (w *Workspace) carry(pointers []lfs.Pointer, into string, others ...string) (missing []lfs.Pointer, err error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(w.GitDir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, p := range pointers {
		at := lfs.In(into, p.OID)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Size() == p.Size {
			continue
		}
		open := []func() (*os.File, error){func() (*os.File, error) {
			return openRegular(root, filepath.ToSlash(lfs.In("lfs/objects", p.OID)), p.Size)
		}}
		for _, store := range others {
			open = append(open, func() (*os.File, error) { return os.Open(lfs.In(store, p.OID)) })
		}
		found := false
		for _, f := range open {
			in, openErr := f()
			if openErr != nil {
				continue
			}
			found, err = keepLarge(in, at, p)
			in.Close()
			if err != nil {
				return nil, fmt.Errorf("the object of %s cannot be kept in %s: %w", p.Path, into, err)
			}
			if found {
				break
			}
		}
		if !found {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// keepLarge copies an object to its place. It reports false if the content is not the pointer's.
func keepLarge(in io.Reader, at string, p lfs.Pointer) (ok bool, err error) {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return false, err
	}
	out, err := os.CreateTemp(filepath.Dir(at), ".interlock-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(out.Name())
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, p.Size+1))
	if err == nil {
		err = errors.Join(out.Chmod(0o644), out.Sync())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return false, err
	}
	if n != p.Size || hex.EncodeToString(sum.Sum(nil)) != p.OID {
		return false, nil
	}
	return true, os.Rename(out.Name(), at)
}

// sendLarge brings the objects of Git LFS that commits need to the upstream, before the commits.
func (w *Workspace) sendLarge(ctx context.Context, v *git.Repository, c *conversions, head, base string) error {
	list, err := c.brought(ctx, v, head, base)
	if err != nil || len(list) == 0 {
		return err
	}
	others := []string{}
	if c.source != nil {
		others = append(others, c.source.largeStore())
	}
	store, away := "", !filepath.IsAbs(w.Upstream)
	switch {
	case !away:
		if store, err = w.storeAt(ctx, c, w.Upstream); err != nil {
			return err
		}
	case len(others) > 0 && !w.Copied:
		store = others[0]
	default:
		store = filepath.Join(w.vaultDir(), "lfs", "objects")
	}
	missing, err := w.carry(list, store, others...)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return problem(
			CodeFilter, "the content of %s (object %s of Git LFS) is neither in the workspace nor in the repository: "+
				"git add the file again, or git lfs fetch it there", missing[0].Path, missing[0].OID[:12],
		)
	}
	if !away {
		return nil
	}
	args := []string{"lfs", "push", "--object-id", w.Upstream}
	for _, p := range list {
		if !slices.Contains(args, p.OID) {
			args = append(args, p.OID)
		}
	}
	push := *v
	push.Env = slices.Concat(push.Env, git.Remote(os.Environ()), personal())
	push.Config = append(slices.Clone(c.helpers), "lfs.storage="+filepath.Dir(store))
	if _, err := push.Output(ctx, args...); err != nil {
		return fmt.Errorf("the objects of Git LFS could not be pushed to %s: %w", w.Upstream, err)
	}
	return nil
}

// storeAt is where a repository on this machine has objects of Git LFS.
func (w *Workspace) storeAt(ctx context.Context, c *conversions, path string) (string, error) {
	if path == w.Source && c.source != nil {
		return c.source.largeStore(), nil
	}
	r := git.Repository{Folder: path, Env: personal()}
	dir, err := r.Output(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", err
	}
	s := source{dir: dir}
	result, err := r.Run(ctx, git.Call{Args: []string{"config", "--get", "lfs.storage"}, Answers: []int{1}})
	if storage := strings.TrimSuffix(string(result.Out), "\n"); storage != "" {
		s.settings = []setting{{"local", "lfs.storage", storage}}
	}
	return s.largeStore(), err
}

// largeOnlyHere counts the objects of Git LFS that no other store has.
func (w *Workspace) largeOnlyHere(large []string) (n int) {
	if len(large) == 0 {
		return 0
	}
	stores := []string{filepath.Join(w.vaultDir(), "lfs", "objects")}
	ctx := context.Background()
	if c, err := w.converting(ctx); err == nil {
		for _, at := range []string{w.Source, w.Upstream} {
			if store, err := w.storeAt(ctx, c, at); err == nil && filepath.IsAbs(at) {
				stores = append(stores, store)
			}
		}
	}
	for _, name := range large {
		if !slices.ContainsFunc(stores, func(store string) bool {
			info, err := os.Lstat(filepath.Join(store, filepath.FromSlash(name)))
			return err == nil && info.Mode().IsRegular()
		}) {
			n++
		}
	}
	return n
}

// digestAt tells apart what a base checkout of a commit may be: by the conversions, and by the large files that are
// there.
func (c *conversions) digestAt(ctx context.Context, gitDir, commit string, used map[string]string) (string, error) {
	digest := c.digest()
	large, err := c.large(ctx, &git.Repository{Dir: gitDir}, used, commit+"^{tree}")
	if err != nil || len(large.Pointers) == 0 || c.source == nil {
		return digest, err
	}
	sum := sha256.New()
	for _, p := range large.Pointers {
		if _, err := os.Stat(lfs.In(c.source.largeStore(), p.OID)); !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(sum, p.OID)
		}
	}
	return digest + hex.EncodeToString(sum.Sum(nil)[:4]), nil
}
