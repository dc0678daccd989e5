package shard

import (
	"context"
	"errors"
	"fmt"
)

// Close carries out what was submitted, answers it, stops everything, makes a last snapshot and
// closes the journal. When ctx ends first, Close stops waiting: appends that stand still are
// abandoned, their waiters get "outcome unknown", and the journal is closed as soon as it lets go.
// Close returns Err if the shard had failed.
func (s *Shard) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

// HandOver is Close while another server waits for the shard: it makes no last snapshot where the entries behind the
// newest one are few.
func (s *Shard) HandOver(ctx context.Context) error {
	s.handsOver.Store(true)
	return s.Close(ctx)
}

func (s *Shard) close(ctx context.Context) error {
	close(s.stopping)
	s.mail.close(closedFor(nil))
	err := wait(ctx, s.stopped)
	s.cancel() // background snapshots and followers need not finish
	if err != nil {
		err = fmt.Errorf("shard: closed before all was written: %w", err)
		go func() {
			<-s.stopped
			s.release(context.Background())
		}()
		return err
	}
	return s.release(ctx)
}

// release drops everything once owner and committer have ended.
func (s *Shard) release(ctx context.Context) error {
	s.cancel()
	s.stopClock()
	err := s.Err()
	idle := make(chan struct{})
	go func() {
		s.background.Wait()
		s.followers.wait()
		close(idle)
	}()
	waited := wait(ctx, idle)
	if err == nil && waited == nil {
		s.lastSnapshot(ctx)
	}
	return errors.Join(err, waited, s.journal.Close())
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
