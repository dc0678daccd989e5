package shard

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// Shard runs one engine over one journal. Its methods may be called by any
// number of goroutines.
type Shard struct {
	number        int
	epoch         interlock.Epoch
	journal       journal.Journal
	clock         Clock
	watch         func() time.Time // tells how long something takes, and no more
	stopClock     func()
	log           *slog.Logger
	observer      Observer
	snapshotBytes int64
	pictureEvents int
	keepBytes     int64
	desk          *Desk // of the readers of the journal
	lowMemory     func() bool
	maxAhead      time.Duration
	options       []engine.Option

	ctx    context.Context // ends when Close stops waiting
	cancel context.CancelFunc

	mail      *mailbox
	owner     *owner
	seat      sync.Mutex // of the owner: see drive.go
	committer *committer
	link      link
	stages    stages      // of the replay at the start
	other     *otherGroup // the link, but of a Manual
	broken    chan error  // the first error of each generation

	durable   atomic.Uint64 // index of the last entry that is known to be durable
	followers followers
	links     links
	resets    resets
	replies   replies
	backups   backups

	size         meanSize
	snapshotAt   atomic.Uint64         // index of the newest snapshot
	snapshotSize atomic.Int64          // how many bytes it has
	snapshotting atomic.Bool           // one is being made
	handsOver    atomic.Bool           // another server waits for the end of this ownership
	kept         atomic.Bool           // all of the journal is history to keep, so that nothing can be cut
	behind       time.Duration         // by how much the clock was behind the journal at the start, if far
	unsaved      atomic.Pointer[error] // why the last snapshot failed; nil if it did not
	background   sync.WaitGroup

	err       error         // set before failed is closed
	failed    chan struct{} // closed when the shard is finished by its journal
	stopping  chan struct{} // closed when Close begins
	stopped   chan struct{} // closed when owner and committer have ended
	closeOnce sync.Once
	closeErr  error
}

// Submit hands commands of one namespace over, to be carried out in this order. The
// shard sets Head.At; Head.From must be a [Receiver] or nil and gets the answers. The shard
// keeps the commands (not the slice), so the caller must not touch them again.
// Either all of them are taken, or none and the error is an *interlock.Error with
// CodeShuttingDown, CodeOverloaded or CodeNotOwner.
func (s *Shard) Submit(cmds ...engine.Command) error {
	check(cmds)
	prepare(cmds)
	return s.put(cmds)
}

// Execute is Submit for a goroutine that has time: if no other one drives the shard, it does so
// itself, and then what it brought was answered when Execute returns. So a lone request passes
// through no other goroutine. It may take as long as an append, and calls Receivers, also those of
// others: the caller holds no lock that one of them wants.
func (s *Shard) Execute(cmds ...engine.Command) error {
	check(cmds)
	prepare(cmds)
	news, err := s.mail.put(cmds)
	if news {
		s.drive()
	}
	return err
}

// Came counts how often commands have been taken, so that a submitter can see whether others
// submit, too.
func (s *Shard) Came() uint64 { return s.mail.came.Load() }

// put hands commands to the owner.
func (s *Shard) put(cmds []engine.Command) error {
	news, err := s.mail.put(cmds)
	if news {
		s.mail.ring()
	}
	return err
}

// check panics for commands that no caller may submit.
func check(cmds []engine.Command) {
	var first *engine.Head
	for _, cmd := range cmds {
		h := cmd.Header()
		if first == nil {
			first = h
		} else if h.Namespace != first.Namespace {
			panic(fmt.Sprintf("shard: commands of %q and %q in one Submit", first.Namespace, h.Namespace))
		}
		if h.From == nil {
			continue
		}
		if _, ok := h.From.(Receiver); !ok {
			panic(fmt.Sprintf("shard: Head.From of a %T is a %T, want a Receiver", cmd, h.From))
		}
	}
}

// prepare does the work that needs no state in the goroutine of the caller, not in the owner's.
func prepare(cmds []engine.Command) {
	for _, cmd := range cmds {
		engine.Prepare(cmd)
	}
}

// Do carries out one command and returns its first answer, also when that is a
// refusal. It sets Head.From. The error is that of Submit, or ctx's: the command
// may then still be carried out. It panics for a command without an answer
// (Detach, Tick, Limit, Recover).
func (s *Shard) Do(ctx context.Context, cmd engine.Command) (engine.Effect, interlock.At, error) {
	if !cmd.IsAnswered() {
		panic(fmt.Sprintf("shard: Do with a %T, which has no answer", cmd))
	}
	if err := ctx.Err(); err != nil {
		return engine.Effect{}, interlock.At{}, err
	}
	c, r := &call{}, s.replies.get()
	c.to.Store(r)
	cmd.Header().From = c
	cmds := []engine.Command{cmd}
	prepare(cmds)
	if err := s.put(cmds); err != nil {
		s.replies.put(r)
		return engine.Effect{}, interlock.At{}, err
	}
	select {
	case <-r.done:
		eff, at := r.effect, r.at
		s.replies.put(r)
		return eff, at, nil
	case <-ctx.Done(): // an answer may still be written to r, so it is not put back
		return engine.Effect{}, interlock.At{}, ctx.Err()
	}
}

// Read runs query in the goroutine that owns the engine, and returns when all that it can have seen
// is durable. It takes its place among the commands of the namespace, and sees it as of now, the
// time that query receives; with "" it is about the whole shard, and sees each namespace as of its
// last command. query must be quick, must not keep the engine and must not call the shard. When
// Read returns an error, query may have run or not, but it does not run any more, and what it saw
// must not be shown.
func (s *Shard) Read(
	ctx context.Context, namespace interlock.Namespace, query func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	return s.Survey(ctx, namespace, func(e *engine.Engine, now engine.Time) bool {
		query(e, now)
		return true
	})
}

// Survey is Read for a query that looks at much. look is called again and again until it reports
// that it is done, and should look at little each time: other namespaces have their turns between.
// It sees one state of its own namespace: no command of that is carried out meanwhile.
func (s *Shard) Survey(
	ctx context.Context, namespace interlock.Namespace, look func(*engine.Engine, engine.Time) (done bool),
) (interlock.At, error) {
	return s.visit(ctx, namespace, func(o *owner, now engine.Time) bool { return look(o.eng, now) })
}

// Drain stops granting: new sessions, leases and waits are refused with CodeShuttingDown, and no
// waiter is granted any more. Commands that return something still work. It returns when that is in
// force.
func (s *Shard) Drain(ctx context.Context) error {
	_, err := s.visit(ctx, "", func(o *owner, _ engine.Time) bool {
		o.draining = true
		o.setLimit(o.limit.LowSpace)
		return true
	})
	return err
}

// At is the newest durable state.
func (s *Shard) At() interlock.At {
	return interlock.At{Shard: s.number, Epoch: s.epoch, Index: interlock.Index(s.durable.Load())}
}

// First is the oldest index that Follow can begin at.
func (s *Shard) First() interlock.Index { return s.journal.First() }

// Failed is closed when the shard is finished because its journal failed or another server has
// taken it over. Err then returns the reason. Unanswered commands have been refused or are
// about to be; waits that were answered with Queued get no second answer.
func (s *Shard) Failed() <-chan struct{} { return s.failed }

// Err is nil until Failed is closed. It wraps the journal's error.
func (s *Shard) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// fail finishes the shard. The owner calls it, once.
func (s *Shard) fail(err error) {
	s.err = fmt.Errorf("shard %d is finished: %w", s.number, err)
	s.log.Error("shard is finished", "error", err, "index", s.At().Index)
	s.mail.close(closedFor(err))
	close(s.failed)
}
