package merge

import (
	"cmp"
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
	// Committer and Signer are those of landings, and Probe uses them as well: see [Turn] and [Config].
	Committer string
	Signer    *Signer
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

// Rejected is a move that the repository did not take, and nothing has moved: a hook or a rule of a forge refused it,
// its check of objects, or git failed on the way.
type Rejected struct {
	// Words are those of the hook, the forge or git: other people's text, cleaned, at most 2 KiB.
	Words string
	// Answered is set if the repository itself answered. Else the way there may have failed.
	Answered bool
	// Err is git's own.
	Err error
}

// Unwrap returns git's own error.
func (e *Rejected) Unwrap() error { return e.Err }

// Error quotes them.
func (e *Rejected) Error() string { return fmt.Sprintf("the repository refuses the move: %q", e.Words) }

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
	at, err := t.refs(ctx, t.Ref, FenceRef(t.Ref))
	if err != nil {
		return Position{}, err
	}
	p := Position{Head: at[t.Ref], fence: at[FenceRef(t.Ref)]}
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

// refs returns where refs are. One that is not there is left out.
func (t *Target) refs(ctx context.Context, names ...string) (at map[string]string, err error) {
	var out string
	if t.Remote == "" {
		args := append([]string{"for-each-ref", "--format=%(objectname)\t%(refname)"}, names...)
		out, err = t.Repository.Output(ctx, args...)
	} else {
		args := append([]string{"ls-remote", "--end-of-options", t.Remote}, names...)
		out, err = t.Repository.Output(ctx, args...)
	}
	at = map[string]string{}
	for line := range strings.SplitSeq(out, "\n") {
		if id, ref, _ := strings.Cut(line, "\t"); slices.Contains(names, ref) {
			at[ref] = id
		}
	}
	return at, err
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
	next := Fence{Token: token, Sequence: p.Fence.Sequence, Commit: p.Head, Offer: p.Fence.Offer}
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
// fence is elsewhere, a *[Locked] if another git holds the ref, a *[Rejected] if the repository did not take it, and
// another one otherwise; then the outcome is unknown, and Move may be repeated. head is New.
func (t *Target) Move(ctx context.Context, m Move) (head string, err error) {
	for _, id := range []string{m.Old, m.New} {
		if err := git.CheckObject(id); err != nil {
			return "", err
		}
	}
	p, err := t.Read(ctx)
	if err != nil {
		return "", err
	}
	if p.Fence.Token != m.Token {
		return "", t.staleFence(m.Token, p)
	}
	next := Fence{Token: m.Token, Sequence: m.Sequence, Commit: m.New}
	fence := step{FenceRef(t.Ref), p.fence, ""}
	if fence.to, err = t.writeFence(ctx, next); err != nil {
		return "", err
	}
	ref := step{t.Ref, m.Old, m.New}
	switch {
	case p.Head == m.New && p.Fence == next:
		return m.New, nil
	case p.Head == m.New:
		ref.from = m.New // moved before a crash; the fence follows
	case p.Head != m.Old:
		return "", &Stale{t.Ref, m.Old, p.Head}
	}
	if t.Remote == "" && p.Head == m.Old {
		if err := t.syncObjects(ctx, m.Old, m.New); err != nil {
			return "", err
		}
	}
	return m.New, t.transact(ctx, ref, fence)
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
	if refused, ok := errors.AsType[*Rejected](err); ok {
		return refused // before the push
	}
	failure, ok := errors.AsType[*git.Error](err)
	if !ok {
		return err
	}
	if failure.Mentions(".lock': File exists") {
		return &Locked{t.Ref, failure.Stderr}
	}
	// Git reports a difference in words. The refs themselves are the answer.
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.ref
	}
	at, readErr := t.refs(ctx, names...)
	if readErr != nil {
		return err
	}
	unmoved := true
	for _, s := range steps {
		have := cmp.Or(at[s.ref], strings.Repeat("0", len(s.to)))
		if have != s.from && have != s.to {
			return &Stale{s.ref, s.from, have}
		}
		unmoved = unmoved && have == s.from
	}
	if unmoved && failure.Exit > 0 && !failure.Machine() {
		return rejected(failure)
	}
	return err
}

// rejected takes the words of the repository from what git wrote: what a remote one said, and its reason.
func rejected(failure *git.Error) *Rejected {
	var said, reasons []string
	for line := range strings.Lines(failure.Stderr) {
		if text, ok := strings.CutPrefix(line, "remote: "); ok {
			said = append(said, strings.TrimSpace(text))
		} else if _, reason, ok := strings.Cut(line, "[remote rejected] ("); ok {
			reason = strings.TrimSuffix(strings.TrimSpace(reason), ")")
			if !slices.Contains(reasons, reason) && reason != "atomic push failure" {
				reasons = append(reasons, reason)
			}
		}
	}
	if len(said)+len(reasons) == 0 {
		return &Rejected{Words: git.Words(failure.Stderr), Err: failure}
	}
	return &Rejected{Words: git.Words(strings.Join(append(said, reasons...), "\n")), Answered: true, Err: failure}
}

// Probe tries to move the ref from a commit to an empty child of it, with the message of the commit, in a way that
// never takes effect. The error is that of Move: a *[Rejected] if the repository refuses this move, too, and nil if it
// would take it. So it separates a refusal of one landing from one of all.
func (t *Target) Probe(ctx context.Context, old string) error {
	p, err := t.Read(ctx)
	if err != nil {
		return err
	}
	if p.Head != old {
		return &Stale{t.Ref, old, p.Head}
	}
	empty, err := t.emptyChild(ctx, old)
	if err != nil {
		return err
	}
	if t.Remote == "" {
		_, err := t.Repository.Feed(
			ctx, fmt.Appendf(nil, "start\nupdate %s %s %s\nprepare\nabort\n", t.Ref, empty, old), "update-ref", "--stdin",
		)
		if failure, ok := errors.AsType[*git.Error](err); ok && failure.Exit > 0 && !failure.Machine() {
			return rejected(failure)
		}
		return err
	}
	return t.probePush(ctx, step{t.Ref, old, empty})
}

// emptyChild writes a commit like another one that changes nothing.
func (t *Target) emptyChild(ctx context.Context, old string) (string, error) {
	text, err := t.Repository.Output(ctx, "cat-file", "commit", old)
	if err != nil {
		return "", err
	}
	c, err := parseCommit([]byte(text))
	if err != nil {
		return "", err
	}
	c.parents = []string{old}
	c.author, c.committer = person(c.author), person(cmp.Or(t.Committer, committer))
	c.authored, c.committed = max(0, c.authored), max(0, c.committed)
	if c.signature = ""; t.Signer != nil {
		if c.signature, err = t.Signer.sign(ctx, c.encode()); err != nil {
			return "", err
		}
	}
	return t.Repository.Feed(ctx, c.encode(), "hash-object", "-w", "-t", "commit", "--stdin")
}

// probePush tries a step at the remote repository. A ref below the ref is refused by each repository, and with it, in
// one transaction, the step. Hooks and rules come before that.
func (t *Target) probePush(ctx context.Context, s step) error {
	err := t.push(ctx, []step{s, {s.ref + "/interlock-probe", strings.Repeat("0", len(s.to)), s.to}})
	failure, ok := errors.AsType[*git.Error](err)
	if !ok || failure.Exit <= 0 || failure.Machine() {
		return err
	}
	r := rejected(failure)
	if !r.Answered {
		return err
	}
	for _, own := range []string{
		"failed to update ref", "cannot lock ref", "atomic transaction failed", "conflict",
		"failed to update",
	} {
		if last := r.Words[strings.LastIndexByte(r.Words, '\n')+1:]; strings.Contains(last, own) {
			return nil
		}
	}
	return r
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
	for _, s := range steps {
		if s.ref != t.Ref || git.IsZero(s.from) || s.from == s.to {
			continue
		}
		if err := t.pushLarge(ctx, s.from, s.to); err != nil {
			return err
		}
	}
	args := []string{"push", "--quiet", "--atomic", "--porcelain", "--no-verify"}
	var specs []string
	for _, s := range steps {
		expected := s.from
		if git.IsZero(expected) {
			expected = "" // the ref must not exist
		}
		args = append(args, "--force-with-lease="+s.ref+":"+expected)
		if git.IsZero(s.to) {
			specs = append(specs, ":"+s.ref)
		} else {
			specs = append(specs, s.to+":"+s.ref)
		}
	}
	for _, o := range t.PushOptions {
		args = append(args, "--push-option="+o)
	}
	result, err := t.Repository.Run(
		ctx, git.Call{Args: append(append(args, "--end-of-options", t.Remote), specs...), Answers: []int{1}},
	)
	if err != nil || result.Exit == 0 {
		return err
	}
	// Why a ref was refused is on the standard output.
	return &git.Error{
		Command: "push", Exit: 1, Stderr: strings.TrimSpace(result.Stderr) + "\n" + strings.TrimSpace(string(result.Out)),
		Err: errors.New("exit status 1"),
	}
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
