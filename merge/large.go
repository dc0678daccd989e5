package merge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/lfs"
)

// pushLarge pushes the objects of Git LFS that a move brings, before the ref moves: a clone of the target would stop at
// a pointer without one. The error is a *[Rejected] if an object is nowhere, or the forge refuses it.
func (t *Target) pushLarge(ctx context.Context, from, to string) error {
	list, err := t.large(ctx, from, to)
	if err != nil || len(list) == 0 {
		return err
	}
	r := t.Repository
	r.Config = append(slices.Clone(r.Config), "lfs.allowincompletepush=false", "remote.interlock.url="+t.Remote)
	lacks, err := t.missing(ctx, list)
	if err != nil {
		return err
	}
	if len(lacks) > 0 {
		// What was pushed to the forge alone is there with its objects, or nowhere.
		var paths []string
		for _, p := range lacks {
			paths = append(paths, p.Path)
		}
		_, err := r.Output(ctx, "lfs", "fetch", "--include="+strings.Join(paths, ","), "interlock", to)
		if refused := largeRefused(err, lacks[0], "fetched"); refused != nil && !refused.Answered {
			return refused
		}
		if lacks, err = t.missing(ctx, list); err != nil {
			return err
		}
		if len(lacks) > 0 {
			return &Rejected{Words: "neither the merger's repository nor the target has the content of " + lacks[0].Path +
				", object " + lacks[0].OID + " of Git LFS: submit it again where it is, or git lfs push it", Answered: true}
		}
	}
	args := []string{"lfs", "push", "--object-id", "interlock"}
	for _, p := range list {
		if !slices.Contains(args, p.OID) {
			args = append(args, p.OID)
		}
	}
	if _, err = r.Output(ctx, args...); err == nil {
		return nil
	}
	if refused := largeRefused(err, list[0], "pushed"); refused != nil {
		return refused
	}
	return err
}

// largeRefused makes a *[Rejected] of an error of git lfs, nil of any other. What failed may be the way to the forge:
// only words about the objects are an answer.
func largeRefused(err error, p lfs.Pointer, what string) *Rejected {
	failure, ok := errors.AsType[*git.Error](err)
	switch {
	case !ok:
		return nil
	case failure.Mentions("is not a git command"):
		return &Rejected{
			Words: "files of Git LFS cannot land, such as " + p.Path + ": git-lfs is not installed where the merger runs",
			Err:   err,
		}
	}
	about := false
	for _, words := range []string{"does not exist", "Not Found", "not found", "missing object"} {
		about = about || failure.Mentions(words)
	}
	return &Rejected{
		Words: git.Words(
			"the objects of Git LFS could not be " + what + ", such as that of " + p.Path + ": " + failure.Stderr,
		),
		Err: err, Answered: about,
	}
}

// missing returns the pointers without an object in this repository.
func (t *Target) missing(ctx context.Context, list []lfs.Pointer) (lacks []lfs.Pointer, err error) {
	dir, err := t.commonDir(ctx)
	if err != nil {
		return nil, err
	}
	result, err := t.Repository.Run(ctx, git.Call{Args: []string{"config", "--get", "lfs.storage"}, Answers: []int{1}})
	if err != nil {
		return nil, err
	}
	store := lfs.Store(dir, strings.TrimSuffix(string(result.Out), "\n"))
	for _, p := range list {
		if info, err := os.Stat(lfs.In(store, p.OID)); err != nil || info.Size() != p.Size {
			lacks = append(lacks, p)
		}
	}
	return lacks, nil
}

// large lists the pointers that a move brings at paths of Git LFS.
func (t *Target) large(ctx context.Context, from, to string) ([]lfs.Pointer, error) {
	r := t.Repository
	all := func(string) bool { return true }
	blobs, err := lfs.Read(ctx, &r, all, to, "^"+from)
	if err != nil || len(blobs.Pointers) == 0 {
		return nil, err
	}
	// Documentation has pointers, too. The attributes are those of the new commit.
	dir, err := os.MkdirTemp("", "interlock-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r.Env = append(slices.Clone(r.Env), "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	if _, err := r.Output(ctx, "read-tree", to); err != nil {
		return nil, err
	}
	var paths strings.Builder
	for _, p := range blobs.Pointers {
		paths.WriteString(p.Path + "\x00")
	}
	out, err := r.Feed(ctx, []byte(paths.String()), "check-attr", "--cached", "--stdin", "-z", "filter")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(out, "\x00")
	return slices.DeleteFunc(blobs.Pointers, func(p lfs.Pointer) bool {
		for i := 0; i+2 < len(fields); i += 3 {
			if fields[i] == p.Path {
				return fields[i+2] != lfs.Driver
			}
		}
		return true
	}), nil
}
