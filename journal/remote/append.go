package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Append implements journal.Journal. When ctx ends before the engine has answered, the outcome
// is unknown.
func (j *Journal) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	if tail := j.Tail(); first != tail+1 {
		return fmt.Errorf("%w: append at index %d, expected %d", journal.ErrMisuse, first, tail+1)
	}
	if err := journal.CheckEntries(entries); err != nil {
		return err
	}
	old := j.tail // no other goroutine changes it
	frame, next := encodeFrame(old, j.owner.Epoch, entries)
	found, err := j.send(ctx, next, frame)
	switch {
	case noSpace(err):
		return err
	case err != nil:
		return j.fail(err)
	}
	if err := j.fenced(ctx, old, found); err != nil {
		return err
	}
	if found.Tail != next {
		return j.fail(fmt.Errorf(
			"%w: the append at index %d found the tail at %q", journal.ErrFailed, first, found.Tail,
		))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tail = next
	return nil
}

// send appends a frame behind the tail, and returns the head that the outcome is read from: the append
// was carried out if it has this owner, and next as its tail. ErrNoSpace means that nothing
// was written.
func (j *Journal) send(ctx context.Context, next Position, frame []byte) (found Head, err error) {
	s, old := j.store, j.tail
	stored := false
	unsure, err := s.attempts(ctx, func(ctx context.Context) (err error) {
		stored, err = s.driver.Append(ctx, j.owner, old, next, frame)
		return err
	})
	switch {
	case stored:
		return Head{Owner: j.owner, Tail: next}, nil
	case err != nil && !noSpace(err):
		return found, failed(fmt.Sprintf("the append at index %d", old.Index+1), err)
	}
	// Another owner came first, an attempt was carried out and its answer lost, or the engine carried
	// it out and answered that it has no room.
	found, readErr := s.head(ctx)
	switch {
	case readErr != nil:
		return found, failed("reading what became of an append", errors.Join(err, readErr))
	case err != nil && found.Owner == j.owner && found.Tail == old && !unsure:
		return found, err
	}
	return found, nil
}

// guarded makes a request that compares the owner and the end of the log, and reads why the comparison failed if it
// did: done is false if the owner is still this one. An error other than ErrFenced leaves the journal usable.
func (j *Journal) guarded(
	ctx context.Context, request func(ctx context.Context, by Head) (bool, error),
) (done bool, err error) {
	s, by := j.store, Head{Owner: j.owner, Tail: j.position()}
	_, err = s.attempts(ctx, func(ctx context.Context) (err error) {
		done, err = request(ctx, by)
		return err
	})
	switch {
	case done:
		return true, nil
	case noSpace(err):
		return false, err
	case err != nil:
		return false, fmt.Errorf("%w: %w", journal.ErrFailed, err)
	}
	h, err := s.head(ctx)
	if err != nil {
		return false, failed("reading the newest owner", err)
	}
	return false, j.fenced(ctx, by.Tail, h)
}

// must is guarded for a request that nothing but another owner or a lost end can refuse.
func (j *Journal) must(ctx context.Context, request func(ctx context.Context, by Head) (bool, error)) error {
	done, err := j.guarded(ctx, request)
	if err == nil && !done {
		err = fmt.Errorf("%w: the owner was refused", journal.ErrFailed)
	}
	return err
}

func (j *Journal) remove(ctx context.Context, from, to string) error {
	return j.must(ctx, func(ctx context.Context, by Head) (bool, error) {
		return j.store.driver.Remove(ctx, by, from, to)
	})
}

// stillOwner is the guard of a call that changes nothing.
func (j *Journal) stillOwner(ctx context.Context) error {
	return j.must(ctx, j.store.driver.Confirm)
}

// Barrier implements journal.Journal.
func (j *Journal) Barrier(ctx context.Context) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	err := j.stillOwner(ctx)
	if err == nil || noSpace(err) || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrLost) {
		return err // without room nothing was confirmed, and the journal goes on when there is room again
	}
	return j.fail(fmt.Errorf("%w: it is unknown whether epoch %d is still the newest: %w",
		journal.ErrFailed, j.owner.Epoch, err))
}
