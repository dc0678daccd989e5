package proxy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
)

// Whoever makes up the name of a key, while Interlock does not answer, holds up nobody
// else.
func TestGoodStatementsDoNotWait(t *testing.T) {
	ring := signed.NewRing()
	now := time.Now()
	good, _, err := ring.Sign(&signed.Statement{
		Namespace: "default", Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}}, Fence: 7,
	}, now.Add(time.Second), signed.DefaultTTL)
	if err != nil {
		t.Fatal(err)
	}
	s := newStatements(&Statements{Namespace: "default"}, nil)
	s.set = ring.KeySet(now)
	asked, silent := make(chan struct{}), errors.New("no answer")
	s.source = func(ctx context.Context) (signed.KeySet, error) {
		close(asked)
		<-ctx.Done()
		return nil, silent
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.verify(ctx, "x", "k", now)
		done <- err
	}()
	<-asked
	if found, err := s.verify(t.Context(), good, "k", now.Add(2*time.Second)); err != nil || found.Fence != 7 {
		t.Error(found, err)
	}
	// Nor does another stranger ask meanwhile: that would close asked again.
	if _, err := s.verify(t.Context(), "y", "k", now.Add(2*time.Second)); !errors.Is(err, &interlock.Error{Code: interlock.CodeInvalidStatement}) {
		t.Error(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, &interlock.Error{Code: interlock.CodeInvalidStatement}) {
		t.Error(err)
	}
}
