package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// TestIDTaken: what is to be made under the id of something that is there is refused, and
// nothing is journaled. Made twice, it could not be replayed.
func TestIDTaken(t *testing.T) {
	s := newStand()
	sess := s.session(t)
	other := s.session(t)
	name := s.out.Effects[0].Session.Name
	s.step(&engine.SetQueue{Head: s.head(sess), Queue: interlock.TaskQueue{Name: "q"}})
	s.want(t, engine.Done)
	claims := []interlock.Claim{{Key: "k", Mode: interlock.IntentShared}}
	lease := interlock.LeaseID(s.id())
	s.step(&engine.Acquire{Head: s.head(sess), ID: lease, LeaseRequest: interlock.LeaseRequest{Claims: claims}})
	s.want(t, engine.Granted)
	run, ended := interlock.LeaseID(s.id()), s.id()
	start := engine.StartRun{Head: s.head(sess), ID: run, Org: "acme"}
	first := start
	s.step(&first)
	s.want(t, engine.Granted)
	s.release(sess, s.acquire(sess, "k"))
	s.step(&engine.StartRun{Head: s.head(sess), ID: ended, Org: "acme"})
	s.release(sess, ended)
	spec := engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{Queue: "q"}}
	s.step(&engine.Submit{Head: s.head(sess), Task: spec})
	s.want(t, engine.Done)
	twice := engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{Queue: "q"}}
	attempt := interlock.LeaseID(s.id())
	s.step(&engine.Pull{Head: s.head(sess), ID: s.id(), Queue: "q", Max: 1, Leases: [][16]byte{attempt}})
	s.want(t, engine.Granted)
	party := interlock.LeaseID(s.id())
	barrier := []interlock.Claim{{Key: "b", Mode: interlock.Barrier, Count: 2}}
	for i, id := range [][16]byte{party, s.id()} {
		who := []interlock.SessionID{sess, other}[i]
		s.step(&engine.Acquire{Head: s.head(who), ID: id, LeaseRequest: interlock.LeaseRequest{
			Claims: barrier, OnConflict: interlock.Wait,
		}, Attach: true})
	}
	deed := interlock.EffectID(s.id())
	s.step(&engine.ClaimEffect{Head: s.head(sess), ID: deed, Action: "one", TTL: time.Minute})
	s.want(t, engine.Done)

	again := start
	past := start
	past.ID = ended
	for what, cmd := range map[string]engine.Command{
		"a run":                &again,
		"a run that has ended": &past,
		"a lease": &engine.Acquire{
			Head: s.head(other), ID: run, LeaseRequest: interlock.LeaseRequest{Claims: claims},
		},
		"a conversion": &engine.Convert{
			Head: s.head(sess), Lease: lease, ID: run, Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
		},
		"a declared wait": &engine.Declare{Head: s.head(sess), ID: run, On: engine.FlowRef{Session: name}},
		"an arrival":      &engine.Arrive{Head: s.head(sess), Lease: party, ID: run},
		"a task":          &engine.Submit{Head: s.head(other), Task: spec},
		"two tasks":       &engine.Ack{Head: s.head(sess), Lease: attempt, Tasks: []engine.TaskSpec{twice, twice}},
		"a session":       &engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: sess, Agent: "agent"},
		"a claim":         &engine.ClaimEffect{Head: s.head(sess), ID: deed, Action: "two", TTL: time.Minute},
	} {
		s.step(cmd)
		if eff := s.out.Effects[0]; eff.Code != interlock.CodeInvalidRequest ||
			!strings.Contains(prose.Sentence(eff.Message), "with this id already") || len(s.out.Events) > 0 {
			t.Errorf("%s: %v %v %q, and %d events", what, eff.Outcome, eff.Code, prose.Sentence(eff.Message), len(s.out.Events))
		}
	}
}
