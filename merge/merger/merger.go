package merger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

// Config is what a merger needs. Client, Name, Boundary, Target and Files are required.
type Config struct {
	Client   *client.Client
	Name     Name
	Boundary Boundary
	Target   Ref
	Files    Files
	// Adopt has the merger take over the target from another repository, or after its history was rewritten.
	Adopt bool
	// Fetch brings the submission with an id from where agents push it, if Files lacks its commit. It reports whether
	// it was there. nil: agents push into the own repository.
	Fetch func(ctx context.Context, id string) (found bool, err error)
	// Profile is the digest of the boundary's profile.
	Profile string
	// Committer is "NAME <EMAIL>" of the landings' commits: see merge.Turn.
	Committer string
	// Checks are the names of the checks that a tree must pass (default "check"), in the form of git.CheckName.
	Checks []string
	// Impacts returns what a submission can affect, for lanes. It is called once for each content, beside the line; no
	// impacts and an error mean everything. nil means those that the author names.
	Impacts func(ctx context.Context, c Change) ([]string, error)
	// Resolver is the queue that conflicts go to, as tasks with payloads of type Resolution and results of type Answer,
	// before they are returned. Empty means that they are returned at once.
	Resolver string
	// ResolveWithin is how long a resolver may take, from the conflict on (default 15 min).
	ResolveWithin time.Duration
	// Leases demand that submissions hold keys while they are in line. Authors find the rules in the target's document.
	Leases []LeaseRule
	// PriorityFor are the credentials that may submit with a priority, "*" for each. Our own may as well.
	PriorityFor []string
	// Guards find what git merges cleanly, and is usually an accident.
	Guards Guards
	// Train sets runners, batches and lanes.
	Train train.Config
	// Window is how many submissions are taken from the queue at a time (default and at most 60).
	Window int
	// MaxTries is how often a submission is returned before a person must approve another try (default 3).
	MaxTries int
	// Poll is how often the merger looks whether authors have withdrawn submissions in line, and whether a paused queue
	// goes on (default 1 s).
	Poll time.Duration
	// Recheck is how often a head that fails its own checks is checked again (default 1 min).
	Recheck time.Duration
	// GitWithin is how long git may take for one submission at a time, or for one move of the target (default
	// DefaultGitWithin). The repositories of Target and Files have a Limit of it.
	GitWithin time.Duration
	// MoveWithin is how long a forge may take to merge a request before that is a failure of the merger (default 10 min).
	MoveWithin time.Duration
	// CheckWithin is how long a worker may take for one run of a check, before the run counts as failed (default 1 h).
	CheckWithin time.Duration
	// Retry is the pause after a failure of the merger, such as a full disk or a forge that cannot be reached (default
	// 1 s). It doubles with each failure, up to 1 min.
	Retry time.Duration
	// Keep is how long verdicts stay, and records of submissions that were returned and not submitted again (default
	// 30 days).
	Keep time.Duration
	// LockAge is how old a lock file of git must be when the seat is taken, so that it is removed (default 10 s). A
	// push into the repository, or an operator's tool, must not have the target's ref locked for longer.
	LockAge time.Duration
	// Log gets what happens. nil means nowhere.
	Log *slog.Logger

	commitBytes int // of one commit; 0 means maxCommit
}

// DefaultGitWithin is the default of Config.GitWithin.
const DefaultGitWithin = 5 * time.Minute

// maxWindow bounds the line, so that one commit holds the documents of all its landings and drops as many old ones.
const maxWindow = (interlock.MaxWrites - 1) / 4 / 10 * 10

// Merger is one process of a target. Run it.
type Merger struct {
	Config
	// seats are the fences of this process: a seat of another one that did not say goodbye ended with its process.
	seats      map[uint64]bool
	principal  string // our credential, as the server has it; "" without credentials
	repository string // the id of the repository
}

// New returns a merger, or an error of its configuration.
func New(c Config) (*Merger, error) {
	if err := c.Name.Check(); err != nil {
		return nil, err
	}
	if c.Client == nil || c.Boundary == nil || c.Target == nil || c.Files == nil {
		return nil, errors.New("merger: Client, Boundary, Target and Files are required")
	}
	if len(c.Checks) == 0 {
		c.Checks = []string{"check"}
	}
	c.Window = min(cmp.Or(max(0, c.Window), maxWindow), maxWindow)
	c.MaxTries = cmp.Or(max(0, c.MaxTries), 3)
	c.Poll = cmp.Or(max(0, c.Poll), time.Second)
	c.Recheck = cmp.Or(max(0, c.Recheck), time.Minute)
	c.Guards.MaxDeletion = cmp.Or(max(0, c.Guards.MaxDeletion), 50)
	c.LockAge = cmp.Or(max(0, c.LockAge), 10*time.Second)
	c.ResolveWithin = cmp.Or(max(0, c.ResolveWithin), 15*time.Minute)
	c.GitWithin = cmp.Or(max(0, c.GitWithin), DefaultGitWithin)
	c.MoveWithin = cmp.Or(max(0, c.MoveWithin), 10*time.Minute)
	c.CheckWithin = cmp.Or(max(0, c.CheckWithin), time.Hour)
	c.Retry = cmp.Or(max(0, c.Retry), time.Second)
	c.commitBytes = cmp.Or(c.commitBytes, maxCommit)
	c.Keep = cmp.Or(max(0, c.Keep), 30*24*time.Hour)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Merger{Config: c, seats: map[uint64]bool{}}, nil
}

// Run waits for the seat and merges, until ctx ends; then it returns nil. After the loss of the seat or a failure it
// begins again. It returns an error that only an operator can mend, such as an unknown queue.
func (m *Merger) Run(ctx context.Context) error {
	for failures := 1; ctx.Err() == nil; failures++ {
		worked, err := m.sit(ctx, failures)
		switch {
		case ctx.Err() != nil:
			return nil
		case Hopeless(err):
			return err
		case worked:
			failures = 1
		}
		m.Log.Warn("the merger begins again", "error", err, "failures", failures)
		select {
		case <-ctx.Done():
		case <-time.After(m.pause(failures)):
		}
	}
	return nil
}

// Hopeless reports whether an error stays until an operator changes something.
func Hopeless(err error) bool {
	refused, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		_, another := errors.AsType[*AnotherRepository](err)
		return another
	}
	switch refused.Code {
	case interlock.CodeUnknownQueue, interlock.CodeForbidden, interlock.CodeUnauthenticated:
		return true
	}
	return false
}

// sit takes the seat, and merges until it is lost or something fails. It reports whether a submission has ended
// meanwhile. failures counts the failures in a row, this one included if it is one.
func (m *Merger) sit(ctx context.Context, failures int) (worked bool, err error) {
	prepared := m.Prepare(ctx)
	if Hopeless(prepared) {
		return false, prepared
	}
	seat, err := m.Client.Acquire(ctx, client.Request{
		Keys: []interlock.Key{m.Name.Key()}, Purpose: "merge into " + m.Name.Ref(), OnConflict: interlock.Wait,
	})
	if err != nil {
		return false, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = seat.Release(ctx, client.Outcome{})
	}()
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(seat.Context(), cancel)
	defer stop()
	l := &line{
		Merger: m, seat: seat, since: time.Now(), records: map[train.ID]*entry{},
		awaited: map[train.ID]uint64{}, held: map[train.ID]bool{},
		events: make(chan event), ended: make(chan struct{}), checks: map[uint64]context.CancelFunc{}, quiet: newQuiet(),
	}
	m.Log.Info("the merger has the seat", "fence", uint64(seat.Fence()))
	defer func() { l.leaveSeat(outer, err, failures) }()
	if err := l.takeSeat(ctx); err != nil {
		return false, err
	}
	if err := l.removeLocks(ctx); err != nil {
		return false, err
	}
	if prepared != nil { // in the seat, where leaveSeat notes it; the locks may have been the cause
		return false, prepared
	}
	l.train = train.New(l.trainConfig())
	if err := l.recover(ctx); err != nil {
		return false, err
	}
	if err := l.recovered(ctx); err != nil {
		return false, err
	}
	if err := l.recall(ctx); err != nil {
		return false, err
	}
	go l.forgetOld(ctx)
	err = l.run(ctx)
	if lost := seat.Err(); lost != nil {
		err = lost
	}
	return l.worked, err
}

// read reads a JSON document into v, and reports whether there is one. One of another form is none: agents write some,
// and the line must not end for it.
func read(ctx context.Context, c Reader, key interlock.Key, v any) (bool, error) {
	d, err := c.Document(ctx, key)
	if err != nil || d.Absent {
		return false, err
	}
	return json.Unmarshal(d.Body, v) == nil, nil
}
