package workspace

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// A vault is a bare git directory that Interlock has for a workspace. No sandbox sees it, and no agent's setting or
// link is in it. What leaves a workspace goes through it, as objects:
//
//	tree, private git directory ── pack, made in the room ──► vault ──► source, upstream
//
// It borrows the objects of the source, as the private git directory does, and is made when it is first needed.

// vaultTarget is where the vault has the target as it was fetched last, and savedHead what is being saved.
const (
	vaultTarget = "refs/interlock/target"
	savedHead   = "refs/interlock/save"
)

func (w *Workspace) vaultDir() string { return filepath.Join(w.dir, "vault") }

// vault opens the vault.
func (w *Workspace) vault(ctx context.Context) (*git.Repository, error) {
	v := &git.Repository{Dir: w.vaultDir(), Env: w.Author.env()}
	if exists(v.Dir) {
		return v, nil
	}
	// After a crash there is a part of one, under another name.
	unfinished := v.Dir + ".new"
	if err := removeAll(unfinished); err != nil {
		return nil, err
	}
	alternates := filepath.Join(unfinished, "objects", "info", "alternates")
	if err := w.bareGit(unfinished, filepath.Join(w.Source, "objects")); err != nil {
		return nil, err
	}
	if w.Copied {
		copies := git.Repository{Dir: unfinished}
		if _, err := copies.Output(ctx, "update-ref", "refs/interlock/start", w.Start); err != nil {
			return nil, err
		}
		if _, err := copies.Output(ctx, "repack", "-a", "-d", "-q"); err != nil {
			return nil, err
		}
		if err := os.Remove(alternates); err != nil {
			return nil, err
		}
	}
	return v, os.Rename(unfinished, v.Dir)
}

// bareGit makes a git directory without a configuration of its own, which borrows objects.
func (w *Workspace) bareGit(dir, alternate string) error {
	files := map[string]string{
		"HEAD": "ref: refs/heads/none\n", "config": bareConfig(w.Start), "objects/info/alternates": alternate + "\n",
	}
	if shallow, err := os.ReadFile(filepath.Join(w.Source, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(folder)), 0o700); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// bareConfig is the configuration of a git directory that has a commit, and no files.
func bareConfig(commit string) string {
	if len(commit) == 64 {
		return "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
	}
	return "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
}

// store is the object store that the private git directory borrows from: that of the source, or the vault's, where the
// source may forget objects.
func (w *Workspace) store() string {
	if w.Copied {
		return filepath.Join(w.vaultDir(), "objects")
	}
	return filepath.Join(w.Source, "objects")
}

// maxPack is how many bytes are taken out of a workspace at once.
const maxPack = 64 << 30

// take brings commits of the room into the vault, with all that they reach and the vault lacks. If it returns no
// error the vault has all of it, well formed by git's own rules if strict.
func (r *Room) take(ctx context.Context, ids []string, strict bool) error {
	w := r.w
	v, err := w.vault(ctx)
	if err != nil {
		return err
	}
	in := strings.Join(ids, "\n") + "\n"
	known := ""
	for _, id := range w.known() {
		known += "^" + id + "\n"
	}
	args := []string{"index-pack", "--stdin", "--fix-thin", fmt.Sprintf("--max-input-size=%d", int64(maxPack))}
	if strict {
		args = append(args, "--strict")
	}
	from, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := r.Git.Run(ctx, git.Call{
			Args: []string{"pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "--quiet"},
			In:   strings.NewReader(in + known), Out: to,
		})
		to.CloseWithError(err)
		packed <- err
	}()
	_, err = v.Run(ctx, git.Call{Args: args, In: from})
	from.CloseWithError(err)
	if failed := <-packed; failed != nil && ctx.Err() == nil {
		return w.gitFailed(failed)
	}
	if err != nil {
		return w.malformed(err)
	}
	if _, err := v.Feed(ctx, []byte(in+known), "rev-list", "--objects", "--quiet", "--stdin"); err != nil {
		return w.malformed(err)
	}
	return nil
}

// malformed is about commits that cannot be taken out of the workspace.
func (w *Workspace) malformed(err error) error {
	failure, ok := err.(*git.Error)
	if !ok || failure.DiskFull() {
		return err
	}
	return w.broken("git refuses commits of %s/%s (%s)", w.Repo, w.Name, firstLines(failure.Stderr, 2))
}

// known are commits that the source, or the vault, is sure to have, and the workspace, too, unless it was broken.
func (w *Workspace) known() []string {
	if w.Base != w.Start {
		return []string{w.Start, w.Base}
	}
	return []string{w.Start}
}

// give brings a commit from the vault into the room, with all that it reaches.
func (r *Room) give(ctx context.Context, id string) error {
	v, err := r.w.vault(ctx)
	if err != nil {
		return err
	}
	in := id + "\n"
	for _, known := range r.w.known() {
		in += "^" + known + "\n"
	}
	from, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := v.Run(ctx, git.Call{
			Args: []string{"pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "--quiet"},
			In:   strings.NewReader(in), Out: to,
		})
		to.CloseWithError(err)
		packed <- err
	}()
	_, err = r.Git.Run(ctx, git.Call{Args: []string{"index-pack", "--stdin", "--fix-thin"}, In: from})
	from.CloseWithError(err)
	if failed := <-packed; failed != nil {
		return failed
	}
	return r.w.gitFailed(err)
}
