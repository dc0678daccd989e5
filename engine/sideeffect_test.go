package engine_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// claimEffect claims an action without a session, and returns the claim's id.
func (s *stand) claimEffect(action string) interlock.EffectID {
	id := s.id()
	s.step(&engine.ClaimEffect{Head: s.head(interlock.SessionID{}), ID: id, Action: action})
	return id
}

// settleEffect records the outcome of an effect.
func (s *stand) settleEffect(id interlock.EffectID, state interlock.EffectState, result string) {
	s.step(&engine.SettleEffect{Head: s.head(interlock.SessionID{}), ID: id, State: state, Result: result})
}

// knows fails unless an effect is remembered, or is not.
func (s *stand) knows(t *testing.T, action string, want bool) {
	t.Helper()
	if _, ok := s.e.Effect(s.head(interlock.SessionID{}).Namespace, sha256.Sum256([]byte(action))); ok != want {
		t.Errorf("the effect of %q is remembered: %v, want %v", action, ok, want)
	}
}

// TestEffectLimit: a namespace remembers a bounded number of effects. An effect that was not
// done makes room for a new one, the others never do.
func TestEffectLimit(t *testing.T) {
	s := newStand()
	var first, second interlock.EffectID
	for i := range interlock.MaxEffects {
		id := s.claimEffect(fmt.Sprint(i))
		s.want(t, engine.Done)
		switch i {
		case 0:
			first = id
		case 1:
			second = id
		}
	}
	s.claimEffect("more")
	s.refusedWith(t, interlock.CodeTooManyEffects)
	s.settleEffect(first, interlock.EffectDone, "")
	s.claimEffect("more")
	s.refusedWith(t, interlock.CodeTooManyEffects)
	for _, want := range []string{"99999 are claimed or unknown, and 1 done", "expires in 168h0m0s"} {
		if text := prose.Sentence(s.out.Effects[0].Message); !strings.Contains(text, want) {
			t.Errorf("the refusal says %q, and not %q", text, want)
		}
	}
	s.settleEffect(second, 0, "")
	s.claimEffect("more")
	s.want(t, engine.Done)
	s.knows(t, "0", true)
	s.knows(t, "1", false)
	s.knows(t, "more", true)
	s.now = s.now.Add(interlock.EffectWindow) // what was done is past
	s.claimEffect("even more")
	s.want(t, engine.Done)
	s.knows(t, "0", false)
	s.settleEffect(first, 0, "")
	s.refusedWith(t, interlock.CodeUnknownEffect)
}

// TestSettleBeyondEffectLimit: an effect that is remembered can be settled, also with more
// text, where more are remembered than the limit of now.
func TestSettleBeyondEffectLimit(t *testing.T) {
	s := newStand()
	var last interlock.EffectID
	for i := range engine.MostEffects + 1 {
		last = s.claimEffect(fmt.Sprint(i))
		s.want(t, engine.Done)
	}
	s.e.RememberFew()
	s.settleEffect(last, interlock.EffectDone, `"it was done"`)
	s.want(t, engine.Done)
	s.claimEffect("more")
	s.refusedWith(t, interlock.CodeTooManyEffects)
}

// TestEffectBytes: the bytes of remembered effects have a limit, too. A claimer at the limit
// may still report that something was done.
func TestEffectBytes(t *testing.T) {
	t.Parallel()
	s := newStand()
	result := `"` + strings.Repeat("x", interlock.MaxResultBytes-2) + `"`
	bytes := 0
	for i := 0; ; i++ {
		action := fmt.Sprint(i)
		id := s.claimEffect(action)
		s.want(t, engine.Done)
		s.settleEffect(id, interlock.EffectDone, result)
		if bytes += len(action) + len(result); bytes > interlock.MaxEffectBytes {
			s.refusedWith(t, interlock.CodeTooManyEffects)
			s.settleEffect(id, interlock.EffectDone, "")
			s.want(t, engine.Done)
			break
		}
		s.want(t, engine.Done)
	}
	s.claimEffect(strings.Repeat("x", interlock.MaxActionBytes))
	s.want(t, engine.Done) // there is room for less than a result
	action := func(i int) string { return strings.Repeat("x", interlock.MaxActionBytes-1) + fmt.Sprint(i) }
	var last interlock.EffectID
	for i := range interlock.MaxResultBytes / interlock.MaxActionBytes {
		if id := s.claimEffect(action(i)); s.out.Effects[0].Outcome == engine.Done {
			last = id
		}
	}
	s.refusedWith(t, interlock.CodeTooManyEffects)
	s.settleEffect(last, 0, "") // an effect that was not done makes room
	s.claimEffect(action(8))
	s.want(t, engine.Done)
	s.knows(t, action(8), true)
	last = s.claimEffect("nine")
	s.want(t, engine.Done)
	s.settleEffect(last, interlock.EffectDone, result)
	s.refusedWith(t, interlock.CodeTooManyEffects)
	s.now = s.now.Add(interlock.EffectWindow) // what was done is past
	s.settleEffect(last, interlock.EffectDone, result)
	s.want(t, engine.Done)
	s.snapshots(t)
	for i := range 100 {
		s.claimEffect(fmt.Sprint("again ", i))
		s.want(t, engine.Done)
	}
	s.knows(t, "0", false)
	s.snapshots(t)
}

// TestEffectsArePast: those that are past make room for a claim, too.
func TestEffectsArePast(t *testing.T) {
	t.Parallel()
	s := newStand()
	action := func(i int) string { return fmt.Sprint(i) + strings.Repeat("x", interlock.MaxActionBytes-8) }
	result := `"` + strings.Repeat("x", interlock.MaxResultBytes-2) + `"`
	full := func() bool { return s.out.Effects[0].Code == interlock.CodeTooManyEffects }
	for i := 0; ; i++ {
		id := s.claimEffect(action(i))
		if full() {
			break
		}
		s.settleEffect(id, interlock.EffectDone, result)
		if full() {
			s.settleEffect(id, interlock.EffectDone, "")
		}
		s.want(t, engine.Done)
	}
	s.now = s.now.Add(interlock.EffectWindow)
	s.claimEffect(action(0))
	s.want(t, engine.Done)
	s.snapshots(t)
}

// TestManyEffectsArePast: effects that are past together are dropped over several steps, and no
// answer shows those that are left.
func TestManyEffectsArePast(t *testing.T) {
	s := newStand()
	const n = 10 * engine.StepObjects
	for i := range n {
		id := s.claimEffect(fmt.Sprint(i))
		s.settleEffect(id, interlock.EffectDone, "")
		s.want(t, engine.Done)
	}
	s.now = s.now.Add(interlock.EffectWindow)
	known := func() int { return s.e.KnownEffects(s.head(interlock.SessionID{}).Namespace) }
	for i := 0; known() > i; i++ {
		before := known()
		id := s.claimEffect(fmt.Sprint(n - 1 - i))
		s.want(t, engine.Done)
		s.settleEffect(id, interlock.EffectDone, "")
		s.knows(t, fmt.Sprint(n-1-i), true)
		s.knows(t, fmt.Sprint(n-2-i), false)
		if dropped := before - known(); dropped > 2*engine.FarewellDeeds+2 {
			t.Fatalf("%d were dropped at once", dropped)
		}
		s.snapshots(t)
	}
}

// TestEffectList: a list of effects continues where the last one ended, and stops before it has
// more text than an answer takes.
func TestEffectList(t *testing.T) {
	const effects = 500
	s := newStand()
	result := `"` + strings.Repeat("x", interlock.MaxResultBytes-2) + `"`
	ns := s.head(interlock.SessionID{}).Namespace
	for i := range effects {
		s.settleEffect(s.claimEffect(fmt.Sprint(i)), interlock.EffectDone, result)
		s.want(t, engine.Done)
	}
	var after [32]byte
	for n := 0; ; {
		l := &engine.EffectList{Namespace: ns, After: after}
		looks := 1
		for !l.Look(s.e) {
			looks++
		}
		if looks != 2 {
			t.Errorf("it took %d looks, want 2 of 256 effects", looks)
		}
		size := 0
		for _, f := range l.Rows {
			if string(f.Digest[:]) <= string(after[:]) {
				t.Fatalf("effect %x comes after %x", f.Digest, after)
			}
			after = f.Digest
			size += len(f.Action) + len(f.Result)
		}
		if n += len(l.Rows); size > interlock.MaxReadBytes || len(l.Rows) == 0 {
			t.Fatalf("%d effects with %d bytes in one answer", len(l.Rows), size)
		}
		if !l.More {
			if n != effects {
				t.Errorf("%d effects were listed, want %d", n, effects)
			}
			return
		}
	}
}
