package engine_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// sideEffect is an effect in the world outside, as the model knows it.
type sideEffect struct {
	ns      interlock.Namespace
	action  string
	id      interlock.EffectID
	told    interlock.EffectState // 0: it was not done
	lease   *request
	session *session
	agent   string
	flow    string
	claimed engine.Time
	ttl     time.Duration
	attempt int
	settled engine.Time
	result  string
	reason  string
	turn    int // its place among all that were settled
}

// state returns the present state of d: unknown once its claimer is dead.
func (d *sideEffect) state(now engine.Time) interlock.EffectState {
	lives := now < d.claimed.Add(d.ttl)
	switch {
	case d.lease != nil:
		lives = d.lease.phase != closed && d.lease.phase != over
	case d.session != nil:
		lives = !d.session.ended
	}
	if d.told == interlock.EffectClaimed && !lives {
		return interlock.EffectUnknown
	}
	return d.told
}

// deed returns the first remembered side effect that wanted accepts, nil for none.
func (m *model) deed(ns interlock.Namespace, wanted func(*sideEffect) bool) *sideEffect {
	for _, d := range m.sideEffects {
		past := (d.told == 0 || d.told == interlock.EffectDone) && m.now.Sub(d.settled) >= interlock.EffectWindow
		if d.ns == ns && !past && wanted(d) {
			return d
		}
	}
	return nil
}

func (m *model) deedOf(ns interlock.Namespace, action string) *sideEffect {
	return m.deed(ns, func(d *sideEffect) bool { return d.action == action })
}

// claimed is the side effect that c would make.
func (m *model) claimed(c *engine.ClaimEffect) *sideEffect {
	d := &sideEffect{
		ns: c.Namespace, action: c.Action, id: c.ID, told: interlock.EffectClaimed, agent: c.Agent, claimed: m.now,
		session: m.sessionByID(c.Namespace, c.Session), lease: m.byID(c.Namespace, c.Lease), attempt: 1,
	}
	if d.lease != nil {
		d.session, d.flow, d.agent = d.lease.session, d.lease.flow(), m.agentOf(d.lease)
	} else if d.session != nil {
		if d.flow, d.agent = c.Flow, d.session.agent; d.flow == "" {
			d.flow = "main"
		}
	} else if d.ttl = c.TTL; d.ttl == 0 {
		d.ttl = interlock.DefaultEffectTTL
	}
	if before := m.deedOf(c.Namespace, c.Action); before != nil {
		d.attempt += before.attempt
	}
	return d
}

func (m *model) expectClaim(c *engine.ClaimEffect) answer {
	if s := m.sessionByID(c.Namespace, c.Session); !c.Session.IsZero() && s == nil {
		return refusalKey(interlock.CodeUnknownSession)
	} else if s != nil && s.ended {
		return refusalKey(interlock.CodeSessionEnded)
	}
	switch {
	case c.Action == "":
		return refusalKey(interlock.CodeInvalidRequest)
	case c.TTL < 0 || c.TTL > interlock.MaxEffectTTL:
		return refusalKey(interlock.CodeInvalidTTL)
	}
	if c.Lease.IsZero() {
		return m.expectDeed(m.claimed(c))
	}
	return m.withHeld(&c.Head, c.Lease, func(*request) answer { return m.expectDeed(m.claimed(c)) })
}

// expectDeed returns the expected answer to a claim of d.
func (m *model) expectDeed(d *sideEffect) answer {
	old := m.deedOf(d.ns, d.action)
	if old == nil {
		if want, old := m.crowded(d.ns); want > len(old) {
			return refusalKey(interlock.CodeTooManyEffects)
		}
	}
	if old == nil || old.told == 0 {
		return answer{
			outcome: engine.Done,
			check:   func(got *engine.Effect) error { return m.checkDeed(got.Effect, m.deedOf(d.ns, d.action), true) },
		}
	}
	mine := old.id == d.id
	want := answer{
		outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkDeed(got.Effect, old, mine) },
	}
	if code := otherDeed[old.state(m.now)]; code != "" && !(mine && code == interlock.CodeEffectClaimed) {
		want.outcome, want.codes = engine.Refused, []interlock.Code{code}
	}
	return want
}

// otherDeed maps a state to the code for refusing another claimer.
var otherDeed = map[interlock.EffectState]interlock.Code{
	interlock.EffectClaimed: interlock.CodeEffectClaimed, interlock.EffectUnknown: interlock.CodeEffectUnknown,
}

// meant is the side effect that c settles, and whether its claimer does.
func (m *model) meant(c *engine.SettleEffect) (d *sideEffect, mine bool) {
	return m.deed(c.Namespace, func(d *sideEffect) bool {
		return d.id == c.ID || c.ID.IsZero() && sha256.Sum256([]byte(d.action)) == c.Digest
	}), !c.ID.IsZero()
}

func (m *model) expectSettling(c *engine.SettleEffect) answer {
	if c.ID.IsZero() == (c.Digest == [32]byte{}) || c.State == interlock.EffectClaimed ||
		c.State > interlock.EffectUnknown ||
		c.State == interlock.EffectUnknown && c.ID.IsZero() || c.Result != "" &&
		(c.State != interlock.EffectDone || !json.Valid([]byte(c.Result))) {
		return refusalKey(interlock.CodeInvalidRequest)
	}
	d, mine := m.meant(c)
	if d == nil {
		return refusalKey(interlock.CodeUnknownEffect)
	}
	want := answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkDeed(got.Effect, d, mine) }}
	same := d.told == c.State && d.result == c.Result && d.reason == c.Reason
	switch state := d.state(m.now); {
	case same:
	case state == interlock.EffectDone, !mine && state == 0:
		want.outcome, want.codes = engine.Refused, []interlock.Code{interlock.CodeEffectDone}
	case !mine && state == interlock.EffectClaimed:
		want.outcome, want.codes = engine.Refused, []interlock.Code{interlock.CodeEffectClaimed}
	}
	return want
}

// expectDeedAgain is the answer to a claim or a settlement that was answered before.
func (m *model) expectDeedAgain(cmd engine.Command, known *storedReply) answer {
	switch c := cmd.(type) {
	case *engine.SettleEffect:
		return answer{outcome: engine.Done, check: func(got *engine.Effect) error {
			f := got.Effect
			if f == nil || f.State != c.State || f.ID != c.ID {
				return fmt.Errorf("it was settled as %v, and not %+v", c.State, f)
			}
			return nil
		}}
	case *engine.ClaimEffect:
		d := m.deed(c.Namespace, func(d *sideEffect) bool { return d.id == known.effect })
		if known.effect.IsZero() {
			d = m.deedOf(c.Namespace, c.Action)
		}
		if d == nil {
			return refusalKey(interlock.CodeUnknownEffect)
		}
		proved := c.ID == known.effect || !c.Session.IsZero() || !c.Lease.IsZero()
		mine := d.id == known.effect && proved
		want := answer{
			outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkDeed(got.Effect, d, mine) },
		}
		switch state := d.state(m.now); state {
		case interlock.EffectClaimed:
			if d.id == known.effect && !proved {
				want.outcome, want.codes = engine.Refused, []interlock.Code{interlock.CodeEffectClaimed}
			}
		case interlock.EffectUnknown:
			want.outcome, want.codes = engine.Refused, []interlock.Code{otherDeed[state]}
		case 0:
			want.outcome, want.codes = engine.Refused, []interlock.Code{interlock.CodeEffectDone}
		}
		return want
	}
	return answer{}
}

// checkDeed compares the description of an effect.
func (m *model) checkDeed(f *engine.SideEffect, d *sideEffect, mine bool) error {
	switch {
	case f == nil || d == nil:
		return fmt.Errorf("want the effect %+v, got %+v", d, f)
	case f.Action != d.action || f.Digest != sha256.Sum256([]byte(d.action)) || f.State != d.state(m.now) ||
		f.Attempt != d.attempt:
		return fmt.Errorf("want %v of attempt %d, got %+v", d.state(m.now), d.attempt, f)
	case f.Agent != d.agent || f.Flow != d.flow || f.Age != m.now.Sub(d.claimed) ||
		d.session != nil && f.Session != d.session.name:
		return fmt.Errorf("want one claimed by %s/%s at %d, got %+v", d.agent, d.flow, d.claimed, f)
	case mine != (f.ID == d.id), !mine && !f.ID.IsZero():
		return fmt.Errorf("the claimer's secret is %v, and %v is told (mine: %v)", d.id, f.ID, mine)
	case f.Result != d.result || d.settled > 0 && f.Settled != m.now.Sub(d.settled),
		d.settled > 0 && !reflect.DeepEqual(f.Reason, message.Plain(d.reason)):
		return fmt.Errorf("want the result %q, the reason %q, got %+v", d.result, d.reason, f)
	case (f.State == interlock.EffectUnknown && d.told == interlock.EffectClaimed) != (f.Reason != nil && d.settled == 0):
		return fmt.Errorf("it is not said why it is unknown: %+v", f)
	case (f.ExpiresIn > 0) != (d.ttl > 0 && f.State == interlock.EffectClaimed):
		return fmt.Errorf("it is claimed for %v, and %v is told", d.ttl, f.ExpiresIn)
	}
	return nil
}

func (m *model) permitDeed(cmd engine.Command, ev *record.Event) error {
	switch c := cmd.(type) {
	case *engine.ClaimEffect:
		d := m.claimed(c)
		if old := m.deedOf(c.Namespace, c.Action); old != nil && old.told != 0 {
			return fmt.Errorf("it is %v already", old.state(m.now))
		}
		if string(ev.Blob) != c.Action || ev.ID != c.ID || ev.Generation != uint64(d.attempt) || ev.Agent != d.agent ||
			ev.Flow != d.flow || ev.TTL != d.ttl {
			return fmt.Errorf("want the claim %+v", d)
		}
		return nil
	case *engine.SettleEffect:
		d, mine := m.meant(c)
		switch {
		case d == nil || ev.ID != d.id || len(ev.Blob) > 0:
			return fmt.Errorf("nobody settles %+v", d)
		case d.told == interlock.EffectDone:
			return errors.New("it is done")
		case !mine && d.state(m.now) != interlock.EffectUnknown:
			return fmt.Errorf("only its claimer may settle what is %v", d.state(m.now))
		case ev.Op != uint8(c.State) || ev.Result != c.Result || ev.Outcome != c.Reason:
			return fmt.Errorf("it was told to be %v", c.State)
		}
		return nil
	}
	return errors.New("nobody claims or settles an effect")
}

func (m *model) foldDeed(cmd engine.Command) {
	switch c := cmd.(type) {
	case *engine.ClaimEffect:
		d := m.claimed(c)
		m.sideEffects = slices.DeleteFunc(
			m.sideEffects, func(old *sideEffect) bool { return old.ns == d.ns && old.action == d.action },
		)
		m.sideEffects = append(m.sideEffects, d)
	case *engine.SettleEffect:
		d, _ := m.meant(c)
		m.events++
		d.told, d.settled, d.result, d.reason, d.turn = c.State, m.now, c.Result, c.Reason, m.events
	}
}

// checkDeeds compares the list of effects.
func (m *model) checkDeeds(e *engine.Engine, ns interlock.Namespace) error {
	var want []*sideEffect
	for _, d := range m.sideEffects {
		if d == m.deedOf(ns, d.action) {
			want = append(want, d)
		}
	}
	slices.SortFunc(want, func(a, b *sideEffect) int {
		x, y := sha256.Sum256([]byte(a.action)), sha256.Sum256([]byte(b.action))
		return bytes.Compare(x[:], y[:])
	})
	list := &engine.EffectList{Namespace: ns}
	for !list.Look(e) {
	}
	if len(list.Rows) != len(want) || list.More {
		return fmt.Errorf("%d effects are listed, want %d", len(list.Rows), len(want))
	}
	for i := range want {
		if err := m.checkDeed(&list.Rows[i], want[i], false); err != nil {
			return err
		}
		if f, ok := e.Effect(ns, list.Rows[i].Digest); !ok || !reflect.DeepEqual(f, list.Rows[i]) {
			return fmt.Errorf("the effect %x is listed as %+v, and shown as %+v", f.Digest, list.Rows[i], f)
		}
	}
	return nil
}

// crowded returns how many done effects must be forgotten before another is remembered, and
// those that may be, the oldest first.
func (m *model) crowded(ns interlock.Namespace) (want int, old []*sideEffect) {
	retention := m.settings[ns].EffectRetention
	if retention == 0 {
		retention = interlock.DefaultEffectRetention
	}
	m.deed(ns, func(d *sideEffect) bool {
		if d.told != 0 {
			want++ // a free one makes room
		}
		return false
	})
	return max(0, want+1-engine.MostEffects), m.doneFor(ns, retention)
}

// doneFor returns the effects that were done so long ago, the oldest first.
func (m *model) doneFor(ns interlock.Namespace, age time.Duration) (list []*sideEffect) {
	m.deed(ns, func(d *sideEffect) bool {
		if d.told == interlock.EffectDone && m.now.Sub(d.settled) >= age {
			list = append(list, d)
		}
		return false
	})
	slices.SortFunc(list, func(a, b *sideEffect) int { return cmp.Compare(a.turn, b.turn) })
	return list
}

func (m *model) expectForgetting(c *engine.ForgetEffects) answer {
	byDigest := c.One
	if c.OlderThan < 0 || c.OlderThan > interlock.EffectWindow || byDigest && c.OlderThan > 0 {
		return refusalKey(interlock.CodeInvalidRequest)
	}
	n := len(m.doneFor(c.Namespace, c.OlderThan))
	if byDigest {
		d := m.deed(c.Namespace, func(d *sideEffect) bool { return sha256.Sum256([]byte(d.action)) == c.Digest })
		if d == nil {
			return refusalKey(interlock.CodeUnknownEffect)
		}
		if code := otherDeed[d.state(m.now)]; code != "" {
			return refusalKey(code)
		}
		n = 1
	}
	return answer{outcome: engine.Done, check: func(got *engine.Effect) error {
		if got.Forgotten != n || got.More {
			return fmt.Errorf("%d effects are forgotten, want %d", got.Forgotten, n)
		}
		return nil
	}}
}

func (m *model) permitForgotten(cmd engine.Command, ev *record.Event) error {
	want, old := 0, []*sideEffect(nil)
	switch c := cmd.(type) {
	case *engine.ClaimEffect:
		want, old = m.crowded(c.Namespace)
	case *engine.ForgetEffects:
		if c.One {
			if [32]byte(ev.Blob) != c.Digest || ev.Num != 0 {
				return errors.New("it is another one that is to be forgotten")
			}
			return nil
		}
		old = m.doneFor(c.Namespace, c.OlderThan)
		want = len(old)
	}
	if want == 0 || int(ev.Num) != want || want > len(old) || len(ev.Blob) > 0 {
		return fmt.Errorf("%d effects are to be forgotten, of %d that are old enough", want, len(old))
	}
	return nil
}

func (m *model) foldForgotten(ev *record.Event) {
	gone := m.doneFor(ev.Namespace, 0)[:ev.Num]
	m.sideEffects = slices.DeleteFunc(m.sideEffects, func(d *sideEffect) bool {
		return slices.Contains(gone, d) ||
			d.ns == ev.Namespace && len(ev.Blob) > 0 && sha256.Sum256([]byte(d.action)) == [32]byte(ev.Blob)
	})
}
