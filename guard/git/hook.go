package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
)

// Require is the demand of a push.
type Require string

const (
	// RequireNone needs no lease, as long as no other agent holds a changed path.
	RequireNone Require = "none"
	// RequireLease needs a lease that covers every path that changes.
	RequireLease Require = "lease"
)

// Hook is a pre-receive hook. All fields are required unless it is said.
type Hook struct {
	API     *apiclient.Client
	Keys    Keys
	Require Require
	// Refs are prefixes of the refs that are guarded, such as refs/heads/.
	Refs []string
	// MaxPaths bounds how many paths one push may change; each is a question to
	// Interlock.
	MaxPaths int
	// Dir is the repository; "" means the working directory, as git starts a hook.
	Dir string

	// Leases are the ids that the pusher showed. They may be none.
	Leases []string
	// User is the pusher, where the git server knows; "" means an unknown user. Leases in the
	// user's name and of no session, such as a Git LFS lock, are the user's own: no agent has
	// the id of such a lease.
	User string
}

// RefusedError is why a push is refused, in words for the pusher.
type RefusedError struct {
	Code interlock.Code
	Text string
}

func (e *RefusedError) Error() string { return e.Text }

// Check reads the updates of a push and returns nil when it may go ahead. A refusal
// is a *RefusedError; with any other error, apiclient.ErrUnreachable among them, it is
// not known whether it may.
func (h *Hook) Check(ctx context.Context, updates io.Reader) error {
	list, err := readUpdates(updates)
	if err != nil {
		return err
	}
	repo := repository{dir: h.Dir}
	paths, err := repo.changed(ctx, list, h.guards, h.MaxPaths)
	if errors.Is(err, errTooMany) {
		return &RefusedError{
			interlock.CodeTooManyKeys,
			fmt.Sprintf(
				"the push changes more than %d paths: push it in parts, or ask the operator of the repository to allow more",
				h.MaxPaths,
			),
		}
	}
	if err != nil || len(paths) == 0 {
		return err
	}
	fences, err := h.shown(ctx)
	if err != nil {
		return err
	}
	findings, err := h.judge(ctx, paths, fences)
	if err != nil || len(findings) == 0 {
		return err
	}
	return h.refusal(findings, len(paths))
}

func (h *Hook) guards(ref string) bool {
	return slices.ContainsFunc(h.Refs, func(prefix string) bool { return strings.HasPrefix(ref, prefix) })
}

// shown looks up the leases that the pusher shows. One that is over refuses the push: its
// pusher believes to hold what has gone to others.
func (h *Hook) shown(ctx context.Context) (fences []interlock.Fence, err error) {
	for _, text := range h.Leases {
		id, err := interlock.ParseLeaseID(text)
		if err != nil {
			return nil, &RefusedError{
				interlock.CodeInvalidID, "interlock-lease is not the id of a lease: want l_ and 32 hexadecimal digits",
			}
		}
		lease, err := h.API.Lease(ctx, id)
		if said, ok := errors.AsType[*apiclient.Refusal](err); ok {
			return nil, &RefusedError{said.Code, fmt.Sprintf("the lease of this push is not valid: %s.\nDo not push work done under it: acquire again, fetch, and decide again.", said.Detail)}
		}
		if err != nil {
			return nil, err
		}
		fences = append(fences, lease.Fence)
	}
	return fences, nil
}

// pathProblem is a path that may not change.
type pathProblem struct {
	path    string
	key     interlock.Key
	problem string // why it cannot be asked about; else it is held, or not covered
	holders []apiclient.Holder
	more    int
}

// asking is how many questions are under way at a time.
const asking = 16

// judge asks about each path.
func (h *Hook) judge(ctx context.Context, paths []string, fences []interlock.Fence) ([]pathProblem, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found := make([]*pathProblem, len(paths))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(asking, len(paths)) {
		workers.Go(func() {
			for i := range next {
				f, err := h.ask(ctx, paths[i], fences)
				if err != nil {
					cancel(err)
				}
				found[i] = f
			}
		})
	}
	for i := range paths {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var list []pathProblem
	for _, f := range found {
		if f != nil {
			list = append(list, *f)
		}
	}
	return list, nil
}

// ask asks about one path; nil means that it may change.
func (h *Hook) ask(ctx context.Context, path string, fences []interlock.Fence) (*pathProblem, error) {
	f := &pathProblem{path: path, key: h.Keys.Key(path)}
	if !utf8.ValidString(path) {
		f.problem = "is not UTF-8, so it cannot be a key"
		return f, nil
	}
	if h.Require == RequireLease {
		if covered, err := h.covered(ctx, f.key, fences); covered || err != nil {
			return h.answer(f, err)
		}
	}
	holders, more, err := h.API.Holders(ctx, f.key)
	if err != nil {
		return h.answer(f, err)
	}
	var own []interlock.Fence
	for _, holder := range holders {
		switch {
		case h.User != "" && holder.Agent == h.User && holder.Session == "":
			own = append(own, holder.Fence)
		case holder.Key == f.key && (holder.Mode == interlock.IntentExclusive || holder.Mode == interlock.IntentShared):
			// An edit in a copy: what comes of it is pushed later.
		case !slices.Contains(fences, holder.Fence):
			f.holders = append(f.holders, holder)
		}
	}
	f.more = more
	if len(f.holders) > 0 || more > 0 {
		return f, nil
	}
	if h.Require == RequireLease {
		if covered, err := h.covered(ctx, f.key, own); covered || err != nil {
			return h.answer(f, err)
		}
		return f, nil
	}
	return nil, nil
}

// covered reports whether one of the fences may write a key.
func (h *Hook) covered(ctx context.Context, key interlock.Key, fences []interlock.Fence) (bool, error) {
	for _, fence := range fences {
		err := h.API.CheckFence(ctx, key, fence)
		if apiclient.CodeOf(err) != interlock.CodeFenced {
			return err == nil, err
		}
	}
	return false, nil
}

// answer turns Interlock's word about a key into a finding.
func (h *Hook) answer(f *pathProblem, err error) (*pathProblem, error) {
	said, ok := errors.AsType[*apiclient.Refusal](err)
	if !ok {
		return nil, err
	}
	switch said.Code {
	case interlock.CodeInvalidKey, interlock.CodeUnmatchedKey:
		f.problem = "cannot be guarded: " + said.Detail
		return f, nil
	}
	return nil, fmt.Errorf("the hook was refused by the server: %w", err)
}

// MaxShown bounds how many paths a refusal or a report lists.
const MaxShown = 20

// refusal names the blocked paths, the reason, and the next step.
func (h *Hook) refusal(findings []pathProblem, of int) error {
	var b strings.Builder
	held, odd := 0, 0
	for _, f := range findings {
		switch {
		case f.problem != "":
			odd++
		case len(f.holders) > 0 || f.more > 0:
			held++
		}
	}
	fmt.Fprintf(&b, "the push is refused: %d of %d changed paths may not change now\n", len(findings), of)
	for _, f := range findings[:min(len(findings), MaxShown)] {
		b.WriteString("  " + f.text(h.Keys) + "\n")
	}
	if more := len(findings) - MaxShown; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	code := interlock.CodeLeaseRequired
	switch {
	case odd > 0:
		code = interlock.CodeInvalidKey
		b.WriteString("Rename the paths that cannot be guarded.")
	case held > 0:
		code = interlock.CodeHeld
		b.WriteString(
			"Do not bypass them: acquire them (interlock lock KEY --wait 10m), then fetch,\nlook at the changes, and push " +
				"with that lease: git push -o interlock-lease=l_...",
		)
	default:
		b.WriteString(
			"Acquire the paths, or a directory above them, fetch, and push with that lease:\ngit push -o interlock-lease=l_...",
		)
	}
	return &RefusedError{code, b.String()}
}

func (f *pathProblem) text(keys Keys) string {
	name := plain(f.path)
	switch {
	case f.problem != "":
		return name + " " + f.problem
	case len(f.holders) == 0 && f.more > 0:
		return name + ": it is held by others"
	case len(f.holders) == 0:
		return name + ": no lease of yours covers it"
	}
	holder := &f.holders[0]
	text := fmt.Sprintf(
		"%s: held by %s (%s, for %s)", name, plain(holder.Agent), holder.Mode, holder.Held.Round(time.Second),
	)
	if holder.Key != f.key {
		where := string(holder.Key)
		if path, ok := keys.Path(holder.Key); ok {
			where = path
		}
		text += ", who holds " + plain(where)
	}
	if holder.Purpose != "" {
		text += ": " + strconv.Quote(holder.Purpose)
	}
	if more := len(f.holders) - 1 + f.more; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// plain shows text of others on one line: quoted where it could be mistaken.
func plain(s string) string {
	if s == "" {
		return "somebody"
	}
	if quoted := strconv.Quote(s); len(quoted) != len(s)+2 || strings.ContainsAny(s, " ,") {
		return quoted
	}
	return s
}
