package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

func charge(cents int) client.Action {
	return client.Action{
		Tool: "stripe.charge", Target: "account:1", Arguments: map[string]any{"cents": fmt.Sprint(cents), "why": "late fee"},
	}
}

// doing returns a function for Do that answers so.
func doing(result any, err error) func(context.Context, interlock.Effect) (any, error) {
	return func(context.Context, interlock.Effect) (any, error) { return result, err }
}

var errLost = errors.New("the answer was lost")

// rude is a value and an error with methods that panic.
type rude struct{}

func (rude) MarshalJSON() ([]byte, error) { panic("no") }
func (rude) Error() string                { panic("no") }

var effectScenarios = []scenario{
	{"an effect happens once", func(t *testing.T, s *stage) {
		result, err := s.client("a").Do(s.ctx, charge(300), func(_ context.Context, e interlock.Effect) (any, error) {
			if e.State != interlock.EffectClaimed || e.ID.IsZero() || e.Attempt != 1 || !strings.Contains(e.Action, "late fee") {
				t.Errorf("claimed %+v", e)
			}
			return map[string]string{"charge": "ch_1"}, nil
		})
		if err != nil || string(result) != `{"charge":"ch_1"}` {
			t.Errorf("the first: %s, %v", result, err)
		}
		again := charge(300)
		again.Arguments = json.RawMessage(`{"why": "late fee", "cents":"300"}`)
		result, err = s.client("b").Do(s.ctx, again, func(context.Context, interlock.Effect) (any, error) {
			t.Error("it happened twice")
			return nil, nil
		})
		if err != nil || string(result) != `{"charge":"ch_1"}` {
			t.Errorf("the second: %s, %v", result, err)
		}
	}},
	{"who comes meanwhile waits for the result", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		begun, finish := make(chan struct{}), make(chan struct{})
		results := make(chan string, 4)
		do := func(c *client.Client, ctx context.Context, act func(context.Context, interlock.Effect) (any, error)) {
			result, err := c.Do(ctx, charge(1), act)
			results <- fmt.Sprint(string(result), err)
		}
		// Also the other calls of the same client and the same flow wait.
		flow := client.WithFlow(s.ctx, client.SharedFlow)
		go do(a, flow, func(context.Context, interlock.Effect) (any, error) {
			close(begun)
			<-finish
			return 7, nil
		})
		<-begun
		go do(a, flow, doing(8, nil))
		go do(a, s.ctx, doing(9, nil))
		go do(b, s.ctx, doing(10, nil))
		if _, err := b.ClaimEffect(s.ctx, charge(1)); !isCode(err, interlock.CodeEffectClaimed) {
			t.Errorf("the claim of another: %v", err)
		}
		close(finish)
		for range 4 {
			if got := <-results; got != "7<nil>" {
				t.Errorf("got %s", got)
			}
		}
	}},
	{"an error leaves it unknown until it is reconciled", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		if _, err := a.Do(s.ctx, charge(2), doing(nil, errLost)); err != errLost {
			t.Errorf("got %v", err)
		}
		_, err := b.Do(s.ctx, charge(2), doing("twice", nil))
		unknown, ok := errors.AsType[*client.EffectError](err)
		if !ok || !isCode(err, interlock.CodeEffectUnknown) || unknown.Effect.Agent != "a" ||
			unknown.Effect.Reason != errLost.Error() || !unknown.Effect.ID.IsZero() {
			t.Fatalf("got %+v", err)
		}
		for effect, err := range b.Effects(s.ctx, interlock.EffectUnknown) {
			if err != nil || effect.Digest != unknown.Effect.Digest {
				t.Errorf("listed %+v, %v", effect, err)
			}
		}
		effect, err := b.Reconcile(s.ctx, unknown.Effect.Digest, true, json.RawMessage(`"found"`))
		if err != nil || effect.State != interlock.EffectDone || effect.Result != `"found"` {
			t.Errorf("reconciled %+v, %v", effect, err)
		}
		if result, err := a.Do(s.ctx, charge(2), doing("twice", nil)); err != nil || string(result) != `"found"` {
			t.Errorf("afterwards: %s, %v", result, err)
		}
		if _, err := b.Reconcile(s.ctx, unknown.Effect.Digest, false, nil); !isCode(err, interlock.CodeEffectDone) {
			t.Errorf("reconciled otherwise: %v", err)
		}
	}},
	{"what was not done may be done by another", func(t *testing.T, s *stage) {
		if _, err := s.client("a").Do(
			s.ctx, charge(3), doing(nil, fmt.Errorf("charging: %w", client.NotDone(errLost))),
		); !errors.Is(err, errLost) {
			t.Errorf("got %v", err)
		}
		result, err := s.client("b").Do(
			s.ctx, charge(3), func(_ context.Context, e interlock.Effect) (any, error) { return e.Attempt, nil },
		)
		if err != nil || string(result) != "2" {
			t.Errorf("the second attempt: %s, %v", result, err)
		}
	}},
	{"a panic and an ended context leave it unknown", func(t *testing.T, s *stage) {
		c := s.client("a")
		func() {
			defer func() {
				if recover() != "oops" {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = c.Do(s.ctx, charge(4), func(context.Context, interlock.Effect) (any, error) { panic("oops") })
		}()
		ctx, cancel := context.WithCancel(s.ctx)
		_, err := c.Do(ctx, charge(5), func(ctx context.Context, _ interlock.Effect) (any, error) {
			cancel()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		for _, a := range []client.Action{charge(4), charge(5)} {
			if _, err := c.Do(s.ctx, a, doing("twice", nil)); !isCode(err, interlock.CodeEffectUnknown) {
				t.Errorf("again: %v", err)
			}
		}
	}},
	{"who does not want to wait is told for whom", func(t *testing.T, s *stage) {
		if _, err := s.client("a").ClaimEffect(s.ctx, charge(6)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		other := charge(6)
		other.OnTaken = func(e interlock.Effect) {
			if e.Agent != "a" || e.State != interlock.EffectClaimed {
				t.Errorf("it is taken: %+v", e)
			}
			cancel()
		}
		if _, err := s.client("b").Do(ctx, other, doing("twice", nil)); !isCode(err, interlock.CodeEffectClaimed) ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}},
	{"a result that cannot be kept", func(t *testing.T, s *stage) {
		c := s.client("a")
		long := strings.Repeat("x", interlock.MaxResultBytes)
		for i, x := range []struct {
			value any
			got   string
			why   string
		}{
			{make(chan int), "", "json: unsupported type: chan int"},
			{long, `"` + long + `"`, "it has 65538 bytes, and the maximum is 65536"},
			{json.RawMessage("\"\xff\""), "\"\xff\"", "it is not valid UTF-8"},
			{rude{}, "", "encoding it panicked: no"},
		} {
			kept := `{"interlock":"result not stored","reason":"` + x.why + `"}`
			if got, err := c.Do(s.ctx, charge(10+i), doing(x.value, nil)); err != nil || string(got) != cmp.Or(x.got, kept) {
				t.Errorf("got %.99s, %v", got, err)
			}
			if got, err := c.Do(s.ctx, charge(10+i), doing("twice", nil)); err != nil || string(got) != kept {
				t.Errorf("again: %s, %v", got, err)
			}
		}
	}},
	{"an error with any text", func(t *testing.T, s *stage) {
		c := s.client("a")
		for i, x := range []struct {
			err  error
			said string
		}{
			{errors.New(strings.Repeat("錯", 200)), strings.Repeat("錯", interlock.MaxReasonBytes/3)},
			{errors.New("no \xff\xfe such file"), "no \uFFFD such file"},
			{rude{}, "%!v(PANIC=Error method: no)"},
		} {
			if _, err := c.Do(s.ctx, charge(20+i), doing(nil, x.err)); err != x.err {
				t.Errorf("got %v", err)
			}
			_, err := c.Do(s.ctx, charge(20+i), doing("twice", nil))
			if unknown, ok := errors.AsType[*client.EffectError](err); !ok || unknown.Effect.Reason != x.said {
				t.Errorf("again: %+v", err)
			}
		}
	}},
	{"bad actions are refused", func(t *testing.T, s *stage) {
		c := s.client("a")
		for _, a := range []client.Action{
			{Target: "t"},
			{Tool: "t"},
			{Tool: "t", Target: "t", Arguments: 7},
			{Tool: "t", Target: "t", Arguments: make(chan int)},
			{Tool: "\xff", Target: "t"},
		} {
			if _, err := c.Do(s.ctx, a, doing(1, nil)); !isCode(err, interlock.CodeInvalidRequest) {
				t.Errorf("%+v: %v", a, err)
			}
		}
		if _, err := c.Effect(s.ctx, [32]byte{1}); !isCode(err, interlock.CodeUnknownEffect) {
			t.Errorf("no effect: %v", err)
		}
	}},
}

// An effect happens once when the answers to its claim and to its settlement are lost.
func TestEffectsOverBrokenLinks(t *testing.T) {
	crowd(t, func(s *stage) {
		b := &breaker{dial: s.w.inside}
		c := s.w.connect(b.Dial, client.Config{Agent: "a"})
		loseEffect := func() {
			b.setLose(func(f *proto.ServerFrame) bool {
				return slices.ContainsFunc(f.Replies, func(r proto.Reply) bool { return len(r.Effects) > 0 })
			})
		}
		loseEffect()
		times := 0
		result, err := c.Do(s.ctx, charge(1), func(context.Context, interlock.Effect) (any, error) {
			times++
			loseEffect()
			return times, nil
		})
		if err != nil || string(result) != "1" || times != 1 {
			t.Errorf("it happened %d times: %s, %v", times, result, err)
		}
	})
}

// A claimer that could not report the outcome of an effect does not do it again, and reports it
// as soon as there is a server again.
func TestSettledWhenTheServerIsBack(t *testing.T) {
	crowd(t, func(s *stage) {
		b := &breaker{dial: s.w.inside}
		c := s.w.connect(b.Dial, client.Config{Agent: "a"})
		flow := client.WithFlow(s.ctx, client.SharedFlow)
		var back func()
		var unreported error
		a := charge(1)
		a.OnUnreported = func(err error) { unreported = err }
		result, err := c.Do(flow, a, func(context.Context, interlock.Effect) (any, error) {
			back = b.block()
			b.cut()
			return "ch_1", nil
		})
		if string(result) != `"ch_1"` || err != nil || !isCode(unreported, interlock.CodeOutcomeUnknown) {
			t.Errorf("got %s, %v, %v", result, err, unreported)
		}
		back()
		if result, err := c.Do(flow, charge(1), doing("twice", nil)); err != nil || string(result) != `"ch_1"` {
			t.Errorf("again: %s, %v", result, err)
		}
	})
}

// A caller that stops waiting while its claim is on its way leaves nothing behind.
func TestAClaimThatIsGivenUp(t *testing.T) {
	crowd(t, func(s *stage) {
		b := &breaker{dial: s.w.inside}
		c := s.w.connect(b.Dial, client.Config{Agent: "a"})
		ctx, cancel := context.WithCancel(s.ctx)
		b.setLose(func(f *proto.ServerFrame) bool {
			lose := slices.ContainsFunc(f.Replies, func(r proto.Reply) bool { return len(r.Effects) > 0 })
			if lose {
				cancel()
			}
			return lose
		})
		if _, err := c.Do(ctx, charge(1), doing("ch_1", nil)); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		result, err := s.client("b").Do(
			s.ctx, charge(1), func(_ context.Context, e interlock.Effect) (any, error) { return e.Attempt, nil },
		)
		if err != nil || string(result) != "2" {
			t.Errorf("the next: %s, %v", result, err)
		}
	})
}

// A session that ends while a claim is on its way: the claim is asked for again in the
// next one, and only what is granted then is done.
func TestAClaimWhoseSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, links: make(chan proto.ServerLink, 1)}
		say := func(op proto.Op, r proto.Reply) {
			r.Slot, r.Seq = op.Slot, op.Seq
			s.say(r)
		}
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			s.answer(s.next(proto.OpOpen))
			s.answer(s.next(proto.OpAttach))
			s.next(proto.OpClaimEffect)
			s.cut()
			say(s.next(proto.OpAttach), proto.Reply{Outcome: proto.Refused, Code: interlock.CodeSessionEnded})
			s.answer(s.next(proto.OpOpen))
			s.answer(s.next(proto.OpAttach))
			claimed := interlock.Effect{ID: [16]byte{7}, State: interlock.EffectClaimed}
			say(s.next(proto.OpClaimEffect), proto.Reply{Outcome: proto.Done, Effects: []interlock.Effect{claimed}})
			settle := s.next(proto.OpSettleEffect)
			if settle.ID != claimed.ID || settle.Effect.State != interlock.EffectDone || string(settle.Effect.Result) != "1" {
				t.Errorf("settled so: %+v %+v", settle, settle.Effect)
			}
			say(settle, proto.Reply{Outcome: proto.Done, Effects: []interlock.Effect{claimed}})
			s.answer(s.next(proto.OpClose))
		}()
		c, err := client.New(t.Context(), s.Dial, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if result, err := c.Do(t.Context(), charge(1), doing(1, nil)); err != nil || string(result) != "1" {
			t.Errorf("got %s, %v", result, err)
		}
		closeClient(t, c)
		<-finished
	})
}
