package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Action is something to be done in the world outside Interlock that must not happen twice,
// such as a charge. Two of them are the same if their canonical forms (RFC 8785) are, however
// they are written and whichever agent plans them.
type Action struct {
	Tool   string // the tool that acts, such as "stripe.charge"
	Target string // the target of the action, such as "account:12345"
	// Arguments are the other values that identify the action, as a JSON object or a value that
	// encoding/json encodes as one; nil: {}. No time and no random number belongs here, and
	// amounts are best given as text. No secret either: every caller in the namespace can see
	// them.
	Arguments any

	// Lease is as long as which the claim to do it lives; zero: the client's session.
	Lease interlock.LeaseID
	Flow  string // as in Request

	// OnTaken, if set, is called before Do waits for another claimer that is about to do it. A
	// caller that does not want to wait ends the context of Do there.
	OnTaken func(other interlock.Effect)

	// OnUnreported, if set, is called in place of a warning in the log when the server has not
	// confirmed the outcome that Do reports: it may count as unknown.
	OnUnreported func(err error)

	id interlock.EffectID // of the claim: the same one each time that it is asked for
}

// EffectError reports that an effect cannot be claimed or settled: with CodeEffectClaimed
// another claimer is about to do it, with CodeEffectUnknown it may have happened and the
// outcome is unknown, with CodeEffectDone it is settled otherwise. It wraps the
// *interlock.Error.
type EffectError struct {
	Refusal *interlock.Error
	Effect  interlock.Effect // the effect's state: others' text
}

func (e *EffectError) Error() string { return e.Refusal.Error() }

func (e *EffectError) Unwrap() error { return e.Refusal }

// NotDone marks an error of a function that Do calls: the action has certainly not happened, so
// the next claimer may do it.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDone{err}
}

type notDone struct{ error }

func (e *notDone) Unwrap() error { return e.error }

// Do calls act to do something that must not happen twice, and returns its result as JSON. If
// it was done before, by any claimer, act is not called and the result is that of then. While
// another claimer is about to do it, Do waits.
//
// Do reports the result of act to the server: a result means that it was done, an error that the
// outcome is unknown (it may have happened before the answer was lost), unless it is marked by
// NotDone. After a panic or the death of the process the outcome is unknown, too. It is not
// done again then, and Do returns an *EffectError with CodeEffectUnknown: find out at the
// target whether it happened, and report that by Reconcile.
//
// act gets the effect that it is about; its Digest is a good idempotency key for a target that
// takes one. Once act was called, Do returns what act returned, whatever becomes of the report: its
// error as it is, or its result. A report that does not arrive leaves the outcome unknown to others, and
// a warning in the default log. In the place of a result that cannot be stored, as it is no JSON or has
// more than interlock.MaxResultBytes, others find {"interlock": "result not stored", "reason": ...}.
func (c *Client) Do(
	ctx context.Context, a Action, act func(ctx context.Context, effect interlock.Effect) (result any, err error),
) (json.RawMessage, error) {
	effect, err := c.undertake(ctx, a)
	if err != nil {
		return nil, err
	}
	if effect.State == interlock.EffectDone {
		return json.RawMessage(effect.Result), nil
	}
	returned := false
	defer func() {
		if !returned {
			c.settle(
				ctx, a, Settlement{ID: effect.ID, State: interlock.EffectUnknown, Reason: "the function that performs it panicked"},
			)
		}
	}()
	value, failure := act(ctx, effect)
	returned = true
	if failure != nil {
		s := Settlement{ID: effect.ID, State: interlock.EffectUnknown, Reason: reasonOf(failure)}
		if _, not := errors.AsType[*notDone](failure); not {
			s.State = 0
		}
		c.settle(ctx, a, s)
		return nil, failure
	}
	result, problem := resultOf(value)
	if len(result) == 0 && problem == "" {
		result = json.RawMessage("null")
	}
	s := Settlement{ID: effect.ID, State: interlock.EffectDone, Result: result}
	if problem != "" {
		s.Result = unstored(problem)
		slog.Warn("the result of an effect that is done is not stored", "tool", a.Tool, "target", a.Target, "reason", problem)
	}
	c.settle(ctx, a, s)
	if len(result) == 0 {
		result = s.Result
	}
	return result, nil
}

// settleTimeout is how long Do tries to report the outcome of an effect, also when its context
// has ended.
const settleTimeout = 10 * time.Second

// settle reports the outcome of an effect that Do has claimed.
func (c *Client) settle(ctx context.Context, a Action, s Settlement) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_, err := c.SettleEffect(limit, s)
	if s.State == interlock.EffectDone && refusedAsWrong(err) {
		s.Result = unstored(err.Error())
		_, err = c.SettleEffect(limit, s)
	}
	switch {
	case err == nil:
	case a.OnUnreported != nil:
		a.OnUnreported(err)
	default:
		slog.Warn(
			"the outcome of an effect was not reported: it may count as unknown", "tool", a.Tool, "target", a.Target,
			"error", err,
		)
	}
}

// undertake claims an effect for Do, and waits while another claimer has it.
func (c *Client) undertake(ctx context.Context, a Action) (interlock.Effect, error) {
	a.Flow, a.id = c.flow(ctx, a.Flow), newEffectID()
	pace := Backoff{Most: reconnectMost}
	for {
		effect, err := c.claim(ctx, a)
		other, taken := errors.AsType[*EffectError](err)
		switch {
		case taken && other.Refusal.Code == interlock.CodeEffectClaimed:
			effect = other.Effect
		case errors.Is(err, &interlock.Error{Code: interlock.CodeOutcomeUnknown}):
			if pace.Wait(ctx, 0) == nil {
				continue // asking again tells: if it was claimed, by a session that has ended since
			}
			c.withdraw(ctx, a)
			return effect, err
		default:
			return effect, err
		}
		// Another claimer has it.
		if a.OnTaken != nil {
			a.OnTaken(effect)
		}
		for isClaimed := true; isClaimed; isClaimed = effect.State == interlock.EffectClaimed {
			if cause := pace.Wait(ctx, 0); cause != nil {
				return effect, errors.Join(err, cause)
			}
			effect, err = c.Effect(ctx, effect.Digest)
			if errors.Is(err, &interlock.Error{Code: interlock.CodeUnknownEffect}) {
				break // it was not done, or is forgotten
			}
			if err != nil {
				return effect, err
			}
		}
	}
}

// withdraw frees a claim that may have been granted just when its caller went away: the next
// claimer gets it, since the action was not performed.
func (c *Client) withdraw(ctx context.Context, a Action) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if effect, err := c.claim(limit, a); err == nil && effect.State == interlock.EffectClaimed {
		c.settle(limit, a, Settlement{ID: effect.ID, Reason: "its caller disconnected before it was started"})
	}
}

// ClaimEffect claims an external action, for callers that cannot use Do. It returns the effect
// as claimed, with its ID, which its claimer settles it with; or as done before, with its
// Result. The error is an *EffectError when another claimer is about to do it, or when it is
// unknown whether it happened. A claim is that of this call: another one, also of the same flow or under
// the same lease, gets that error until its outcome is reported.
func (c *Client) ClaimEffect(ctx context.Context, a Action) (interlock.Effect, error) {
	a.id = newEffectID()
	return c.claim(ctx, a)
}

func newEffectID() (id interlock.EffectID) {
	_, _ = rand.Read(id[:])
	return id
}

// claim claims an effect under the id of a. One that is answered as claimed is this claim's alone.
func (c *Client) claim(ctx context.Context, a Action) (effect interlock.Effect, err error) {
	var arguments []byte
	if a.Arguments != nil {
		if arguments, err = json.Marshal(a.Arguments); err != nil {
			return effect, &interlock.Error{
				Code: interlock.CodeInvalidRequest, Message: "the action: arguments: " + err.Error(),
			}
		}
	}
	flow := c.flow(ctx, a.Flow)
	var got *found
	err = c.again(ctx, serverBusy, func() (err error) {
		k := c.newCall(proto.OpClaimEffect)
		k.op.Flow, k.op.ID = flow, a.Lease
		k.op.Effect = &proto.EffectOp{Tool: a.Tool, Target: a.Target, Arguments: arguments, Claim: a.id}
		got, err = c.do(ctx, k, "the claim to "+a.Tool)
		return err
	})
	return effectOf(got, err)
}

// Settlement is the outcome of an effect.
type Settlement struct {
	// ID names it to its claimer. Without one, Digest names one with an unknown outcome.
	ID     interlock.EffectID
	Digest [32]byte

	State  interlock.EffectState // EffectDone, EffectUnknown, or 0: it was not done
	Result json.RawMessage       // its result; at most interlock.MaxResultBytes
	Reason string                // else; at most interlock.MaxReasonBytes
}

// SettleEffect reports the outcome of an effect. Repeating the same report changes nothing.
// When ctx ends before the answer came, it continues in the background.
func (c *Client) SettleEffect(ctx context.Context, s Settlement) (interlock.Effect, error) {
	k := c.newCall(proto.OpSettleEffect)
	k.op.ID = s.ID
	k.op.Effect = &proto.EffectOp{Digest: s.Digest, State: s.State, Result: s.Result, Reason: s.Reason}
	return effectOf(c.do(ctx, k, "the settling of an effect"))
}

// Reconcile reports of an effect with an unknown outcome that it happened, with its result
// (JSON, or nil), or that it did not, so that it may be done.
func (c *Client) Reconcile(
	ctx context.Context, digest [32]byte, happened bool, result json.RawMessage,
) (interlock.Effect, error) {
	s := Settlement{Digest: digest}
	if happened {
		s.State, s.Result = interlock.EffectDone, result
	}
	return c.SettleEffect(ctx, s)
}

// Effect looks at an effect. The error has CodeUnknownEffect if it was never claimed,
// or is forgotten.
func (c *Client) Effect(ctx context.Context, digest [32]byte) (interlock.Effect, error) {
	k := c.newCall(proto.OpGetEffect)
	k.op.Effect = &proto.EffectOp{Digest: digest}
	return effectOf(c.do(ctx, k, "the effect"))
}

// Effects lists effects in the order of their digests: those in a state, or all of them
// if it is 0. It asks for more as it goes. After an error nothing more comes.
func (c *Client) Effects(ctx context.Context, state interlock.EffectState) iter.Seq2[interlock.Effect, error] {
	return func(yield func(interlock.Effect, error) bool) {
		for after := [32]byte{}; ; {
			k := c.newCall(proto.OpListEffects)
			k.op.Effect = &proto.EffectOp{State: state, Digest: after}
			got, err := c.do(ctx, k, "the list of effects")
			if err != nil {
				yield(interlock.Effect{}, err)
				return
			}
			for _, effect := range got.Effects {
				if !yield(effect, nil) {
					return
				}
				after = effect.Digest
			}
			if !got.More || len(got.Effects) == 0 {
				return
			}
		}
	}
}

// effectOf takes the effect out of an answer, or the error that has it.
func effectOf(got *found, err error) (interlock.Effect, error) {
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case refused && got != nil && len(got.Effects) == 1:
		return interlock.Effect{}, &EffectError{Refusal: refusal, Effect: got.Effects[0]}
	case err != nil:
		return interlock.Effect{}, err
	case len(got.Effects) != 1:
		return interlock.Effect{}, &interlock.Error{
			Code: interlock.CodeInternal, At: got.at, Message: "the server's answer has no effect in it",
		}
	}
	return got.Effects[0], nil
}
