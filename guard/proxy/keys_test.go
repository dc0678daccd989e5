package proxy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
)

// A caller that makes up the name of a key, while Interlock does not answer, holds up no other
// caller.
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
	if _, err := s.verify(
		t.Context(), "y", "k", now.Add(2*time.Second),
	); !errors.Is(err, &interlock.Error{Code: interlock.CodeInvalidStatement}) {
		t.Error(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, &interlock.Error{Code: interlock.CodeInvalidStatement}) {
		t.Error(err)
	}
}

// The refusal of a statement by a key that is newer than the set, which was got a moment ago,
// contains when to come back; one that is bad for another reason is not.
func TestNewKeysAreLookedForAgain(t *testing.T) {
	ring := signed.NewRing()
	now := time.Now()
	sign := func() string {
		statement, _, err := ring.Sign(&signed.Statement{
			Namespace: "default", Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}}, Fence: 7,
		}, now.Add(time.Second), signed.MaxTTL)
		if err != nil {
			t.Fatal(err)
		}
		return statement
	}
	s := newStatements(&Statements{Namespace: "default"}, nil)
	s.source = func(context.Context) (signed.KeySet, error) { return ring.KeySet(now), nil }
	old := sign()
	if _, err := s.verify(t.Context(), old, "k", now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Rotate(now); err != nil {
		t.Fatal(err)
	}
	fresh := sign()
	after := func(statement string, at time.Duration) time.Duration {
		t.Helper()
		_, err := s.verify(t.Context(), statement, "k", now.Add(at))
		if !errors.Is(err, &interlock.Error{Code: interlock.CodeInvalidStatement}) {
			t.Fatal(err)
		}
		return refusalOf(err, "k").after
	}
	if got := after(fresh, 21*time.Second); got != 40*time.Second {
		t.Errorf("to be sent again after %v, want 40 s", got)
	}
	for _, bad := range []string{"x", old[:len(old)-4] + "AAAA"} {
		if got := after(bad, 21*time.Second); got != 0 {
			t.Errorf("%s is to be sent again after %v", bad, got)
		}
	}
	if _, err := s.verify(t.Context(), fresh, "k", now.Add(time.Minute+time.Second)); err != nil {
		t.Error(err)
	}
}
