package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// DefaultPatience is how long a request may go unanswered before the journal fails, or a waiting
// server tries again. Short, and an engine that elects a leader costs a change of owner; long, and
// callers wait longer to learn that the outcome is unknown.
const DefaultPatience = 8 * time.Second

// Store is one journal in an engine, with any owner. Its methods may be called by any number of
// goroutines.
type Store struct {
	driver   Driver
	patience time.Duration
	around   Surroundings
}

// New makes a store. It sends nothing yet. A patience of 0 means DefaultPatience. The store closes
// the driver.
func New(d Driver, patience time.Duration) *Store { return NewOn(d, patience, actual) }

// NewOn is New for a simulation, which takes time and chance from its seed.
func NewOn(d Driver, patience time.Duration, s Surroundings) *Store {
	if patience <= 0 {
		patience = DefaultPatience
	}
	return &Store{driver: d, patience: patience, around: s}
}

// Close ends the connections. Journals of the store must be closed before.
func (s *Store) Close() error { return s.driver.Close() }

// Shard returns the store of another shard of the same journal. It has the connections of s, and is not
// closed.
func (s *Store) Shard(n int) *Store { return &Store{s.driver.Shard(n), s.patience, s.around} }

// Empty reports whether the store has never been written to.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	h, err := s.head(ctx)
	return err == nil && h.Owner == Owner{}, err
}

func (s *Store) head(ctx context.Context) (h Head, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		h, err = s.driver.Head(ctx)
		return err
	})
	return h, err
}

// get reads a value beside the log.
func (s *Store) get(ctx context.Context, name string) (v Value, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		v, err = s.driver.Get(ctx, name)
		return err
	})
	return v, err
}

func (s *Store) damaged(name, reason string) error {
	return &journal.DamageError{File: s.driver.Place(name), Reason: reason}
}

// oldest is the first index that is kept.
func (s *Store) oldest(ctx context.Context) (interlock.Index, error) {
	list, err := s.frames(ctx, 0, ^interlock.Index(0), 1)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, s.damaged("log/", "there are no entries")
	}
	return list[0].first, nil
}

// ErrUnsafe: the engine's settings are such that it may lose what it has acknowledged. A driver refuses it
// unless loss is allowed.
var ErrUnsafe = errors.New("the engine may lose what it has acknowledged")

func failed(doing string, err error) error {
	return fmt.Errorf("%w: %s: %w", journal.ErrFailed, doing, err)
}

// Through returns the store with another driver in the place of its own, as a test that counts or loses requests needs.
func (s *Store) Through(wrap func(Driver) Driver) *Store {
	return &Store{wrap(s.driver), s.patience, s.around}
}
