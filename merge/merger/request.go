package merger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/forge"
)

// Requests is a target that a forge moves by itself: it forbids each push to the branch, and merges requests. A move
// has four steps, and each first reads the present state, so that it can be repeated after a death anywhere:
//
//	offer   a branch of the landing's own is pushed with the fence ─► refused for its content: the submission's
//	open    a request of that branch, if the forge has none
//	merge   the forge is asked to merge it ─► refused: its checks have failed on it, or a person has closed it: the
//	                                     │              submission's; else, and for each other failure: the merger's
//	settle  the target itself has it ◄───┘  the fence notes it, and the branch goes
//
// The words of the forge move nothing. The landing is done when the target's own history has it: see
// merge.Target.Taken. If others were first, the request is closed, its branch goes, and all is merged anew.
type Requests struct {
	Offers
	// Branch is the full name of the target's branch.
	Branch string
	Forge  Forge
	// Pause is the first pause between two looks at a request (default 1 s). It doubles, up to 15 s.
	Pause time.Duration
	// Look is how long Move waits for the forge before it returns a *Pending (default 10 s).
	Look time.Duration
	// Log gets what happens. nil means nowhere.
	Log *slog.Logger
}

// Offers is the target at the forge, as git has it: a *merge.Target.
type Offers interface {
	Read(ctx context.Context) (merge.Position, error)
	Identity(ctx context.Context) (merge.Identity, error)
	Claim(ctx context.Context, token uint64) (merge.Position, error)
	RemoveLocks(ctx context.Context, before time.Time) (removed []string, err error)
	// Offer pushes a landing to a branch of its own, together with the fence, and returns the branch's full name.
	Offer(ctx context.Context, m merge.Move) (branch string, err error)
	Taken(ctx context.Context, m merge.Move, head string) (string, error)
	// Settle and Revoke move the fence on, and remove the branch.
	Settle(ctx context.Context, m merge.Move, head string) error
	Revoke(ctx context.Context, token uint64) (merge.Position, error)
	// ProbeOffer tries an empty offer, which never takes effect.
	ProbeOffer(ctx context.Context, old string) error
}

// Forge makes requests: a *forge.Forge.
type Forge interface {
	// Find returns the request of a branch.
	Find(ctx context.Context, branch, base string) (r forge.Request, found bool, err error)
	// Open, Merge and Close fail with a *forge.Refused if the forge does not do that.
	Open(ctx context.Context, branch, base, title, text string) error
	Merge(ctx context.Context, number int64, commit, title, text string) error
	Close(ctx context.Context, number int64) error
	// Failing returns which checks of the forge have failed on a request, "" for none.
	Failing(ctx context.Context, r forge.Request) (string, error)
}

// Pending is a move that waits for others, such as a forge that has not merged a request. It is to be repeated.
type Pending struct {
	// For is what it waits for. It may quote others.
	For string
}

// Error is what it waits for.
func (e *Pending) Error() string { return "the landing waits: " + e.For }

const maxLookPause = 15 * time.Second

// Move has the forge merge a landing, and returns the target's commit that has it.
func (r *Requests) Move(ctx context.Context, m merge.Move) (head string, err error) {
	var last error // why the forge has not merged it
	pause := cmp.Or(r.Pause, time.Second)
	until := time.Now().Add(cmp.Or(r.Look, 10*time.Second))
	for {
		at, err := r.Offers.Read(ctx)
		if err != nil {
			return "", err
		}
		if head, err = r.Offers.Taken(ctx, m, at.Head); err != nil {
			return "", err
		} else if head != "" {
			return head, r.Offers.Settle(ctx, m, head)
		}
		if at.Head != m.Old {
			r.log().Warn("others have moved the target, or the forge has merged in another way than by a merge commit: "+
				"the landing does not count", "from", m.Old, "to", at.Head)
			return "", errors.Join(&merge.Stale{Ref: r.Branch, Want: m.Old, Have: at.Head}, last)
		}
		branch, err := r.Offers.Offer(ctx, m)
		if err != nil {
			return "", err
		}
		asked, err := r.advance(ctx, m, strings.TrimPrefix(branch, "refs/heads/"))
		switch waits, ok := errors.AsType[*Pending](err); {
		case ok:
			last = waits
		case err != nil:
			return "", err
		case asked && last == nil:
			last = &Pending{"the forge reports the request as merged, and the target does not have it"}
			continue // it may have it at once
		}
		if time.Now().After(until) {
			return "", last
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(context.Cause(ctx), last)
		case <-time.After(pause):
		}
		pause = min(2*pause, maxLookPause)
	}
}

// advance takes the next step of a request. It reports whether the forge reports it as merged. The error is a
// *merge.Rejected if the request is refused for its content, and a *Pending if the forge may merge it later.
func (r *Requests) advance(ctx context.Context, m merge.Move, branch string) (asked bool, err error) {
	base := strings.TrimPrefix(r.Branch, "refs/heads/")
	q, found, err := r.Forge.Find(ctx, branch, base)
	if err != nil {
		return false, err
	}
	title, text := r.texts(m)
	if !found {
		err := r.Forge.Open(ctx, branch, base, title, text)
		if refused, ok := errors.AsType[*forge.Refused](err); ok {
			return false, &Pending{fmt.Sprintf("the forge opens no request for branch %s: %q", branch, refused.Words)}
		} else if err != nil {
			return false, err
		}
		r.log().Info("a request is open", "branch", branch)
		if q, found, err = r.Forge.Find(ctx, branch, base); err != nil {
			return false, err
		} else if !found {
			return false, &Pending{"the forge has taken the request, and does not show it yet"}
		}
	}
	name := fmt.Sprintf("request %q", git.Words(q.URL))
	switch {
	case q.Base != base:
		return false, rejected("somebody has changed the %s: it is to be merged into %q", name, git.Words(q.Base))
	case q.State == forge.Closed:
		return false, rejected("somebody has closed the %s, and it was not merged", name)
	case q.State == forge.Merged:
		return true, nil
	case q.Commit != m.New:
		return false, &Pending{fmt.Sprintf("the forge shows another commit for the %s", name)}
	case q.BaseCommit != "" && q.BaseCommit != m.Old:
		return false, &Pending{fmt.Sprintf("the forge shows another commit of the target for the %s", name)}
	}
	err = r.Forge.Merge(ctx, q.Number, m.New, title, text)
	refused, ok := errors.AsType[*forge.Refused](err)
	if !ok {
		return err == nil, err
	}
	failing, err := r.Forge.Failing(ctx, q)
	if err != nil {
		return false, err
	}
	if failing != "" {
		return false, rejected("checks of the forge have failed on the %s: %s", name, failing)
	}
	return false, &Pending{fmt.Sprintf("the forge does not merge the %s yet: %q", name, refused.Words)}
}

// rejected is a refusal for the content of a landing.
func rejected(format string, args ...any) error {
	words := git.Words(fmt.Sprintf(format, args...))
	return &merge.Rejected{Words: words, Answered: true, Err: errors.New(words)}
}

// texts are those of a request and of its merge commit. They have no text of an agent: forges read commands in it, and
// send messages to people that it names.
func (r *Requests) texts(m merge.Move) (title, text string) {
	return fmt.Sprintf("Land up to number %d on %s", m.Sequence, strings.TrimPrefix(r.Branch, "refs/heads/")),
		"The merge queue has computed and checked this commit. It merges the request by itself: do not push to its " +
			"branch. Close the request to refuse it: its submissions are tried apart, and what is refused alone comes back " +
			"to its author.\n\nInterlock-Request: " + m.New
}

// Revoke closes the request, if one is open, and removes its branch. From then on no forge merges it.
func (r *Requests) Revoke(ctx context.Context, token uint64) (merge.Position, error) {
	at, err := r.Offers.Read(ctx)
	if err != nil {
		return at, err
	}
	if at.Fence.Token == token && at.Fence.Offer != "" {
		branch := strings.TrimPrefix(merge.OfferRef(r.Branch, at.Fence.Offer), "refs/heads/")
		q, found, err := r.Forge.Find(ctx, branch, strings.TrimPrefix(r.Branch, "refs/heads/"))
		if err == nil && found && q.State == forge.Open {
			r.log().Info("a request is closed", "request", q.URL)
			err = r.Forge.Close(ctx, q.Number)
		}
		if _, refused := errors.AsType[*forge.Refused](err); err != nil && !refused { // one that is merged stays
			return at, err
		}
	}
	return r.Offers.Revoke(ctx, token)
}

// Probe tries an empty landing at the forge, as far as the push of its branch. It never takes effect.
func (r *Requests) Probe(ctx context.Context, old string) error { return r.Offers.ProbeOffer(ctx, old) }

func (r *Requests) log() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}

var _ Ref = (*Requests)(nil)
