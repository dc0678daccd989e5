package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Target is the ref that landings move, in this repository or on a remote one.
//
//	Claim(token)                     raise the fence: from here on no earlier merger moves the ref
//	Move(token, sequence, old, new)  ref: old -> new, and fence: mine -> next, both or none
//
// Both methods are idempotent: they may be repeated after a crash at any point, by this merger or, after its Claim, by
// the next one.
type Target struct {
	// Repository has the objects that the ref moves to.
	Repository git.Repository
	// Ref is the full name, such as refs/heads/main.
	Ref string
	// Remote is the URL of a remote repository, to which Move pushes. Empty means that Repository has the ref.
	Remote string
	// PushOptions go along with each push, for example to a guard that wants the merger's lease.
	PushOptions []string
}

// Position is where a target is.
type Position struct {
	// Head is the commit of the ref.
	Head string
	// Fence is the zero value if there was no merger yet.
	Fence Fence
	// fence is the id of the blob, or that of no object.
	fence string
}

// Stale is a move that git, or the boundary, refused because the target is elsewhere. Nothing has moved.
type Stale struct {
	// Ref is the ref that differs: the target's own or its fence.
	Ref string
	// Want is where the caller expected it: a commit, or a token. Have is where it is.
	Want, Have string
}

// Error names the ref, and what to do.
func (e *Stale) Error() string {
	return fmt.Sprintf("%s is at %s, and %s was expected: read the target again, and check that the lease is still held",
		e.Ref, e.Have, e.Want)
}

// Locked is a ref with a lock file: another git moves it now, or was killed while it did.
type Locked struct {
	// Ref is the ref, Complaint what git wrote.
	Ref, Complaint string
}

// Error names the ref, and what to do.
func (e *Locked) Error() string {
	return fmt.Sprintf("%s is locked by another git, or by one that was killed: %s", e.Ref, e.Complaint)
}

func (t *Target) check() error {
	if err := git.CheckRef(t.Ref); err != nil {
		return err
	}
	if strings.HasPrefix(t.Remote, "-") {
		return fmt.Errorf("the remote %q begins with '-': want a URL or a path", t.Remote)
	}
	for _, o := range t.PushOptions {
		if strings.ContainsAny(o, "\n\x00") {
			return fmt.Errorf("the push option %q has a newline", o)
		}
	}
	return nil
}

// Read returns where the target is. The error is a *[Missing] if the ref does not exist.
func (t *Target) Read(ctx context.Context) (Position, error) {
	if err := t.check(); err != nil {
		return Position{}, err
	}
	fenceRef := FenceRef(t.Ref)
	var out string
	var err error
	if t.Remote == "" {
		out, err = t.Repository.Output(ctx, "for-each-ref", "--format=%(objectname)\t%(refname)", t.Ref, fenceRef)
	} else {
		out, err = t.Repository.Output(ctx, "ls-remote", "--end-of-options", t.Remote, t.Ref, fenceRef)
	}
	if err != nil {
		return Position{}, err
	}
	var p Position
	for line := range strings.SplitSeq(out, "\n") {
		id, ref, _ := strings.Cut(line, "\t")
		switch ref {
		case t.Ref:
			p.Head = id
		case fenceRef:
			p.fence = id
		}
	}
	if p.Head == "" {
		return Position{}, &Missing{t.Ref}
	}
	if p.fence == "" {
		p.fence = strings.Repeat("0", len(p.Head))
		return p, nil
	}
	p.Fence, err = t.readFence(ctx, p.fence)
	return p, err
}

// readFence reads a fence's blob, and fetches it from the remote repository if need be.
func (t *Target) readFence(ctx context.Context, id string) (Fence, error) {
	text, err := t.Repository.Run(ctx, git.Call{Args: []string{"cat-file", "blob", id}})
	if failure, ok := errors.AsType[*git.Error](err); ok && t.Remote != "" && failure.Exit == 128 {
		args := []string{
			"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", t.Remote, FenceRef(t.Ref),
		}
		if _, err := t.Repository.Output(ctx, args...); err != nil {
			return Fence{}, err
		}
		text, err = t.Repository.Run(ctx, git.Call{Args: []string{"cat-file", "blob", id}})
	}
	if err != nil {
		return Fence{}, err
	}
	return parseFence(string(text.Out))
}

// Claim raises the fence to the merger's token, where it is lower. The error is a *[Stale] if it is higher: a later
// merger has the seat.
func (t *Target) Claim(ctx context.Context, token uint64) (Position, error) {
	p, err := t.Read(ctx)
	if err != nil || p.Fence.Token == token {
		return p, err
	}
	if p.Fence.Token > token {
		return Position{}, t.staleFence(token, p)
	}
	next := Fence{Token: token, Sequence: p.Fence.Sequence, Commit: p.Head}
	if p.Fence.Commit != "" {
		// The earlier merger may have been killed between the two refs. Its own Move, or ours, completes them.
		next.Commit = p.Fence.Commit
	}
	id, err := t.writeFence(ctx, next)
	if err != nil {
		return Position{}, err
	}
	if err := t.transact(ctx, step{FenceRef(t.Ref), p.fence, id}); err != nil {
		return Position{}, err
	}
	return t.Read(ctx)
}

func (t *Target) staleFence(token uint64, p Position) error {
	return &Stale{FenceRef(t.Ref), fmt.Sprintf("token %d", token), fmt.Sprintf("token %d", p.Fence.Token)}
}

// Move is one movement of a target.
type Move struct {
	// Token is that of the merger's lease, which Claim has put into the fence.
	Token uint64
	// Sequence is the number of the last landing that New has.
	Sequence uint64
	// Old is where the ref is, New where it goes: commits. New descends from Old.
	Old, New string
}

// Move moves the ref and the fence, both or none, and returns when they are on disk, with all objects that New has
// beyond Old. It returns without doing anything if both are there already. The error is a *[Stale] if the ref or the
// fence is elsewhere, a *[Locked] if another git holds the ref, and another one otherwise; then the outcome is
// unknown, and Move may be repeated.
func (t *Target) Move(ctx context.Context, m Move) error {
	for _, id := range []string{m.Old, m.New} {
		if err := git.CheckObject(id); err != nil {
			return err
		}
	}
	p, err := t.Read(ctx)
	if err != nil {
		return err
	}
	if p.Fence.Token != m.Token {
		return t.staleFence(m.Token, p)
	}
	next := Fence{Token: m.Token, Sequence: m.Sequence, Commit: m.New}
	fence := step{FenceRef(t.Ref), p.fence, ""}
	if fence.to, err = t.writeFence(ctx, next); err != nil {
		return err
	}
	ref := step{t.Ref, m.Old, m.New}
	switch {
	case p.Head == m.New && p.Fence == next:
		return nil
	case p.Head == m.New:
		ref.from = m.New // moved before a crash; the fence follows
	case p.Head != m.Old:
		return &Stale{t.Ref, m.Old, p.Head}
	}
	if t.Remote == "" && p.Head == m.Old {
		if err := t.syncObjects(ctx, m.Old, m.New); err != nil {
			return err
		}
	}
	return t.transact(ctx, ref, fence)
}

// writeFence writes a fence's blob. Its id depends on its content alone, so a repetition finds its own.
func (t *Target) writeFence(ctx context.Context, f Fence) (string, error) {
	synced := t.synced()
	return synced.Feed(ctx, f.encode(), "hash-object", "-w", "-t", "blob", "--stdin")
}

// synced is the repository for writes that are on disk when git is done.
func (t *Target) synced() git.Repository {
	r := t.Repository
	r.Config = slices.Concat(r.Config, []string{"core.fsync=all", "core.fsyncMethod=fsync"})
	return r
}

// step is one ref of a transaction: where it is, and where it goes. It is only compared if both are equal.
type step struct{ ref, from, to string }

// transact moves refs, all or none.
func (t *Target) transact(ctx context.Context, steps ...step) error {
	var err error
	if t.Remote == "" {
		err = t.updateRefs(ctx, steps)
	} else {
		err = t.push(ctx, steps)
	}
	failure, ok := errors.AsType[*git.Error](err)
	if !ok {
		return err
	}
	if failure.Mentions(".lock': File exists") {
		return &Locked{t.Ref, failure.Stderr}
	}
	// Git reports a difference in words. The refs themselves are the answer.
	p, readErr := t.Read(ctx)
	if readErr != nil {
		return err
	}
	for _, s := range steps {
		have := p.Head
		if s.ref != t.Ref {
			have = p.fence
		}
		if have != s.from && have != s.to {
			return &Stale{s.ref, s.from, have}
		}
	}
	return err
}

// updateRefs moves refs of this repository in one transaction, and syncs them.
func (t *Target) updateRefs(ctx context.Context, steps []step) error {
	var in strings.Builder
	in.WriteString("start\n")
	for _, s := range steps {
		if s.from == s.to {
			fmt.Fprintf(&in, "verify %s %s\n", s.ref, s.from)
		} else {
			fmt.Fprintf(&in, "update %s %s %s\n", s.ref, s.to, s.from)
		}
	}
	in.WriteString("prepare\ncommit\n")
	guard, err := t.guard(ctx)
	if err != nil {
		return err
	}
	defer guard.Close()
	synced := t.synced()
	if _, err := synced.Run(ctx, git.Call{
		Args: []string{"update-ref", "--stdin"}, In: strings.NewReader(in.String()), Files: inherited(guard),
	}); err != nil {
		return err
	}
	// Git syncs the file of a ref before it gets its name, and not the folder with the name.
	common, err := t.commonDir(ctx)
	if err != nil {
		return err
	}
	var folders []string
	for _, s := range steps {
		for folder := filepath.Dir(filepath.Join(common, filepath.FromSlash(s.ref))); len(folder) >= len(common); {
			folders = append(folders, folder)
			folder = filepath.Dir(folder)
		}
	}
	return syncFolders(folders)
}

// commonDir is the folder of refs and objects. It is not Dir in a linked work tree.
func (t *Target) commonDir(ctx context.Context) (string, error) {
	dir, err := t.Repository.Output(ctx, "rev-parse", "--git-common-dir")
	if err == nil && !filepath.IsAbs(dir) {
		dir = filepath.Join(t.Repository.Dir, dir)
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// push moves refs of the remote repository. A lease without a plus before the refspec is compared by the server.
func (t *Target) push(ctx context.Context, steps []step) error {
	args := []string{"push", "--quiet", "--atomic", "--porcelain", "--no-verify"}
	var specs []string
	for _, s := range steps {
		expected := s.from
		if git.IsZero(expected) {
			expected = "" // the ref must not exist
		}
		args = append(args, "--force-with-lease="+s.ref+":"+expected)
		specs = append(specs, s.to+":"+s.ref)
	}
	for _, o := range t.PushOptions {
		args = append(args, "--push-option="+o)
	}
	_, err := t.Repository.Output(ctx, append(append(args, "--end-of-options", t.Remote), specs...)...)
	return err
}

// syncObjects syncs the objects that a landing adds. Git does not sync loose objects, and a merge writes trees as such.
// Packs are synced when git receives them.
func (t *Target) syncObjects(ctx context.Context, from, to string) error {
	objects, err := t.Repository.Output(ctx, "rev-parse", "--git-path", "objects")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(objects) {
		objects = filepath.Join(t.Repository.Dir, objects)
	}
	list, err := t.Repository.Output(ctx, "rev-list", "--objects", "--no-object-names", "--end-of-options", to, "^"+from)
	if err != nil {
		return err
	}
	var files, folders []string
	for id := range strings.SplitSeq(list, "\n") {
		if len(id) < 3 {
			continue
		}
		folder := filepath.Join(objects, id[:2])
		name := filepath.Join(folder, id[2:])
		if _, err := os.Stat(name); err == nil {
			files, folders = append(files, name), append(folders, folder)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		// Else it is in a pack, or in an object store that this repository borrows from.
	}
	if len(files) == 0 {
		return nil
	}
	if err := syncEach(files); err != nil {
		return err
	}
	return syncFolders(append(folders, objects))
}
