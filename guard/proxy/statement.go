package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/signed"
)

// statements verify signed fences.
//
// A statement proves that a fence was a live lease's when it was signed, so what stops a late
// one is the higher fence that its successor showed. The turns remember that for as long as a
// statement may hold. Over a restart they forget it, and therefore no statement counts that was
// signed before this process began, by the server's clock and its own.
type statements struct {
	namespace interlock.Namespace
	begun     time.Time
	source    func(context.Context) (signed.KeySet, error)

	mu    sync.Mutex    // guards the fields below
	set   signed.KeySet // nil: never got
	asked time.Time
}

// between is how long a key set is kept at least: any caller can make up the name of a key, and
// shall not make the proxy ask each time.
const between = time.Minute

func newStatements(cfg *Statements, d *apiclient.Client) *statements {
	// Statements have milliseconds.
	s := &statements{namespace: cfg.Namespace, begun: time.Now().Truncate(time.Millisecond), source: d.FenceKeys}
	if cfg.path != "" {
		s.source = func(context.Context) (signed.KeySet, error) {
			content, err := os.ReadFile(cfg.path)
			if err != nil {
				return nil, err
			}
			return signed.ParseKeySet(content)
		}
	}
	return s
}

// verify checks a statement for a key. The fence is for turns to compare.
func (s *statements) verify(
	ctx context.Context, text string, key interlock.Key, now time.Time,
) (*signed.Statement, error) {
	set, fresh, err := s.keys(ctx, now, false)
	if err != nil {
		return nil, err
	}
	want := signed.Want{Namespace: s.namespace, Key: key}
	found, err := set.Verify(text, now, want)
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeInvalidStatement && !fresh {
		// Its key may be a new one.
		if set, fresh, _ = s.keys(ctx, now, true); fresh {
			found, err = set.Verify(text, now, want)
		} else if id := signed.KeyID(text); id != "" && set[id] == nil {
			err = s.later(refusal, now)
		}
	}
	if err == nil && found.Issued.Before(s.begun) {
		err = &interlock.Error{Code: interlock.CodeInvalidStatement, Message: fmt.Sprintf(
			"the signed fence was issued %v before this guard started: sign the lease's fence again",
			s.begun.Sub(found.Issued).Round(time.Millisecond),
		)}
	}
	return found, err
}

// keys returns the key set, got anew when there is none, or when it is asked for and some time
// has passed. fresh reports that it was got just now. A caller that needs no new one does not
// wait.
func (s *statements) keys(ctx context.Context, now time.Time, anew bool) (set signed.KeySet, fresh bool, err error) {
	if set := s.kept(now, anew); set != nil {
		return set, false, nil
	}
	got, err := s.source(ctx)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = got
	return got, true, nil
}

// kept returns the key set that is there, or nil to the caller that is to get it.
func (s *statements) kept(now time.Time, anew bool) signed.KeySet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != nil && (!anew || now.Sub(s.asked) < between) {
		return s.set
	}
	s.asked = now
	return nil
}

// later adds to the refusal of a statement with a key that is not in the set when it will be
// looked for again.
func (s *statements) later(refusal *interlock.Error, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := max(s.asked.Add(between).Sub(now), time.Second)
	own := *refusal
	own.Advice = interlock.Advice{Action: interlock.ActRetry, RetryAfter: after, Message: fmt.Sprintf(
		"the guard fetches newer keys in %v: send the call again then, with a new signed fence if this one has expired",
		after.Round(time.Second),
	)}
	return &own
}
