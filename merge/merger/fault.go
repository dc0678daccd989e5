package merger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
)

// One bad submission must never block a line. So each failure is either that of one submission, which then goes back,
// or that of the merger, which begins again after a pause. What tells them apart is a probe: the same kind of work, on
// the target alone.
//
//	work for one submission fails ─► probe ─► fails: the merger's
//	                                   └─► works: again, and again ─► fails: the submission's
//	a move of several is refused  ─► the batch is cut, as after a failed check
//	a move of one is refused      ─► an empty move ─► refused in the same words: the merger's
//	                                   └─► taken: the submission's
//	the merger died               ─► counted in Health: see health.go

// Cause is what kind of failure returned a submission. The list is closed.
type Cause string

// The causes of a returned submission that no author could see in a conflict or a check.
const (
	CauseObjects   Cause = "objects"   // git refuses the objects that it adds
	CauseMissing   Cause = "missing"   // the repository lacks an object of it
	CausePush      Cause = "push"      // the repository, or its forge, refuses the move
	CauseGit       Cause = "git"       // git fails on it, and on nothing else
	CauseTimeout   Cause = "timeout"   // git did not end within Config.GitWithin, and ends with others
	CauseInvariant Cause = "invariant" // git changes paths that it does not touch
	CauseServer    Cause = "server"    // the server refuses what the merger writes about it
	CauseCrash     Cause = "crash"     // mergers died again and again while they worked on it
	CausePriority  Cause = "priority"  // its credential may not submit with a priority
	CauseStack     Cause = "stack"     // it cannot build on the submission that it names
)

// fault is a failure that belongs to one submission.
type fault struct {
	cause Cause
	words string
}

// errLimit ends what takes longer than Config.GitWithin.
var errLimit = errors.New("git has not ended in time")

// limited is the context of one piece of work for one submission.
func (m *Merger) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return Limit(m.GitWithin)(ctx)
}

// Limit is the Guard of a git.Repository that ends each call that takes longer than within. The calls of Config.Target
// and Config.Files need it: a git that hangs, such as one that waits for a forge, would block the line for ever.
func Limit(within time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, within, errLimit)
	}
}

// tries is how often a piece of work for one submission is tried.
const tries = 3

// attempt does a piece of work for one submission, and again if it fails. It returns a fault if the failure is the
// submission's, and an error if it is the merger's, or if work refuses the submission itself.
func (l *line) attempt(ctx context.Context, id string, work func(ctx context.Context) error) (*fault, error) {
	try := func() error {
		ctx, cancel := l.limited(ctx)
		defer cancel()
		return work(ctx)
	}
	for n := 1; ; n++ {
		err := try()
		no := refusal(err)
		if err == nil || no != nil && no.Reason != merge.ReasonObjects { // that one is git's failure, until it is repeated
			return nil, err
		}
		if failed := l.probe(ctx, err); failed != nil {
			return nil, failed
		}
		l.Log.Warn("work for a submission fails, and works for the target alone", "submission", id, "try", n, "error", err)
		switch {
		case n < tries && (n == 1 || !errors.Is(err, errLimit)):
		case no != nil:
			return nil, err
		default:
			return faultOf(err), nil
		}
	}
}

// probe returns an error if a failure is the merger's: it has lost its seat or its context, or cannot work for the
// target alone either.
func (l *line) probe(ctx context.Context, failure error) error {
	if ctx.Err() != nil || l.seat.Err() != nil || Hopeless(failure) {
		return failure
	}
	ctx, cancel := l.limited(ctx)
	defer cancel()
	_, err := l.Client.Document(ctx, l.Name.Key())
	if err == nil {
		err = l.Boundary.Probe(ctx, l.target.Head)
	}
	if err == nil {
		_, err = l.Config.Target.Read(ctx)
	}
	if err == nil {
		err = l.probeFiles(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w (first: %w)", unrefused(err), unrefused(failure))
	}
	return nil
}

// unrefused is an error that no caller takes for the refusal of a submission.
func unrefused(err error) error {
	if refusal(err) != nil {
		return errors.New(err.Error())
	}
	return err
}

// probeFiles reads of the target what guards read of a landing.
func (l *line) probeFiles(ctx context.Context) error {
	head := l.target.Head
	if _, err := l.Files.Kind(ctx, head); err != nil {
		return err
	}
	if _, err := l.Files.List(ctx, head, "."); err != nil {
		return err
	}
	if _, err := l.Files.Count(ctx, head); err != nil {
		return err
	}
	if _, err := l.Files.Contains(ctx, head, head); err != nil {
		return err
	}
	_, err := l.Files.Reverted(ctx, head, head, nil)
	return err
}

func faultOf(err error) *fault {
	f := &fault{CauseGit, git.Words(err.Error())}
	if failure, ok := errors.AsType[*git.Error](err); ok && failure.Stderr != "" {
		f.words = git.Words(failure.Stderr)
	}
	if _, ok := errors.AsType[*merge.Damage](err); ok {
		f.cause = CauseInvariant
	}
	if _, ok := errors.AsType[*interlock.Error](err); ok {
		f.cause = CauseServer
	}
	if errors.Is(err, errLimit) {
		f.cause = CauseTimeout
	}
	return f
}

// faulty is the outcome of a submission with a fault.
func (l *line) faulty(e *entry, f *fault, against *Against) *Outcome {
	o := l.back(e, WhyFailed, against)
	o.Cause, o.Words = f.cause, f.words
	next := "Make the change anew on the target's commit"
	switch f.cause {
	case CausePush:
		o.Reason = WhyRefused
		o.Message = fmt.Sprintf("Your change is kept, and the target's repository refuses it: %q.", f.words)
		next = "Correct what it names"
	case CauseCrash:
		o.Message = "Your change is kept. " + f.words
	case CauseTimeout:
		o.Message = fmt.Sprintf("Your change is kept. git did not end within %v with it, and ends with others.", l.GitWithin)
	case CauseInvariant:
		o.Message = fmt.Sprintf("Your change is kept. git merges it wrongly, and nothing lands from that: %q.", f.words)
	case CauseServer:
		o.Message = fmt.Sprintf("Your change is kept. The server refuses what is written about it: %q.", f.words)
		next = "Shorten its message, purpose, impacts and paths"
	default:
		o.Message = fmt.Sprintf("Your change is kept. git fails on it, and works with others: %q.", f.words)
	}
	o.Message += fmt.Sprintf(" %s, and %s.", next, submitAgain(&e.record))
	return o
}

// numbers are what differs in two answers of a forge to the same fault: ids, counts, times.
var numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// refused decides about a landing that the repository has refused. It returns a fault if the refusal is the
// submission's, an error if it is the merger's, and the head if the landing has moved when it was tried once more.
func (l *line) refused(ctx context.Context, r *merge.Rejected, s *Staged) (f *fault, head string, err error) {
	limited, cancel := l.limited(ctx)
	defer cancel()
	err = l.Config.Target.Probe(limited, s.Old)
	if also, ok := errors.AsType[*merge.Rejected](err); ok {
		if plain := numbers.ReplaceAllString(r.Words, "N"); plain != numbers.ReplaceAllString(also.Words, "N") {
			err = nil // another rule refuses an empty landing
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("the repository takes no landing at all: %w", errors.Join(r, err))
	}
	if !r.Answered {
		// The way there may have failed for a moment.
		head, err := l.move(ctx, s)
		again, ok := errors.AsType[*merge.Rejected](err)
		if !ok {
			return nil, head, err
		}
		r = again
	}
	return &fault{CausePush, r.Words}, "", nil
}

// pause is how long a merger waits after failures in a row.
func (m *Merger) pause(failures int) time.Duration {
	const most = time.Minute
	d := m.Retry
	for range failures - 1 {
		if d *= 2; d >= most {
			return max(most, m.Retry)
		}
	}
	return d
}
