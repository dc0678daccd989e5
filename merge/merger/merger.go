package merger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/train"
)

// Config is what a merger needs. Client, Name, Ref, Boundary, Target and Files are required.
type Config struct {
	Client *client.Client
	Name   Name
	// Ref is the full name of the target's ref, such as refs/heads/main.
	Ref      string
	Boundary Boundary
	Target   Ref
	Files    Files
	// Fetch brings the submission with an id from where agents push it, if Files lacks its commit. It reports whether
	// it was there. nil: agents push into the own repository.
	Fetch func(ctx context.Context, id string) (found bool, err error)
	// Profile is the digest of the boundary's profile.
	Profile string
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
	// Retry is the pause after a failure of git or the server (default 1 s).
	Retry time.Duration
	// Keep is how long verdicts stay, and records of submissions that were returned and not submitted again (default
	// 30 days).
	Keep time.Duration
	// LockAge is how old a lock file of git must be when the seat is taken, so that it is removed (default 10 s). A
	// push into the repository, or an operator's tool, must not have the target's ref locked for longer.
	LockAge time.Duration
	// Log gets what happens. nil means nowhere.
	Log *slog.Logger
}

// maxWindow bounds the line, so that one commit holds the documents of all its landings and drops as many old ones.
const maxWindow = (interlock.MaxWrites - 1) / 4 / 10 * 10

// Merger is one process of a target. Run it.
type Merger struct {
	Config
}

// New returns a merger, or an error of its configuration.
func New(c Config) (*Merger, error) {
	if err := c.Name.Check(); err != nil {
		return nil, err
	}
	if c.Client == nil || c.Boundary == nil || c.Target == nil || c.Files == nil || c.Ref == "" {
		return nil, errors.New("merger: Client, Ref, Boundary, Target and Files are required")
	}
	if len(c.Checks) == 0 {
		c.Checks = []string{"check"}
	}
	c.Window = min(cmp.Or(max(0, c.Window), maxWindow), maxWindow)
	c.MaxTries = cmp.Or(max(0, c.MaxTries), 3)
	c.Poll = cmp.Or(max(0, c.Poll), time.Second)
	c.Recheck = cmp.Or(max(0, c.Recheck), time.Minute)
	c.LockAge = cmp.Or(max(0, c.LockAge), 10*time.Second)
	c.ResolveWithin = cmp.Or(max(0, c.ResolveWithin), 15*time.Minute)
	c.Retry = cmp.Or(max(0, c.Retry), time.Second)
	c.Keep = cmp.Or(max(0, c.Keep), 30*24*time.Hour)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Merger{c}, nil
}

// Run waits for the seat and merges, until ctx ends; then it returns nil. After the loss of the seat or a failure it
// begins again. It returns an error that only an operator can mend, such as an unknown queue.
func (m *Merger) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := m.sit(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case hopeless(err):
			return err
		}
		m.Log.Warn("the merger begins again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(m.Retry):
		}
	}
	return nil
}

// hopeless reports whether an error stays until an operator changes something.
func hopeless(err error) bool {
	refused, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		_, damaged := errors.AsType[*merge.Damage](err)
		return damaged
	}
	switch refused.Code {
	case interlock.CodeUnknownQueue, interlock.CodeForbidden, interlock.CodeUnauthenticated:
		return true
	}
	return false
}

// sit takes the seat, and merges until it is lost or something fails.
func (m *Merger) sit(ctx context.Context) error {
	seat, err := m.Client.Acquire(ctx, client.Request{
		Keys: []interlock.Key{m.Name.Key()}, Purpose: "merge into " + m.Ref, OnConflict: interlock.Wait,
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = seat.Release(ctx, client.Outcome{})
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(seat.Context(), cancel)
	defer stop()
	l := &line{
		Merger: m, seat: seat, since: time.Now(), train: train.New(m.Train), records: map[train.ID]*entry{},
		awaited: map[train.ID]uint64{}, held: map[train.ID]bool{},
		events: make(chan event), ended: make(chan struct{}), checks: map[uint64]context.CancelFunc{},
	}
	m.Log.Info("the merger has the seat", "fence", uint64(seat.Fence()))
	if err := l.recover(ctx); err != nil {
		return err
	}
	if err := l.recall(ctx); err != nil {
		return err
	}
	go l.forgetOld(ctx)
	err = l.run(ctx)
	if lost := seat.Err(); lost != nil {
		return lost
	}
	return err
}

// read reads a JSON document into v, and reports whether there is one.
func read(ctx context.Context, c Reader, key interlock.Key, v any) (bool, error) {
	d, err := c.Document(ctx, key)
	if err != nil || d.Absent {
		return false, err
	}
	if err := json.Unmarshal(d.Body, v); err != nil {
		return false, fmt.Errorf("the document %s is not the merger's: %w", key, err)
	}
	return true, nil
}
