package engine_test

import (
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// TestLeaseAt: the lease of a key is the one that claims this very key exclusively, under any of its
// spellings.
func TestLeaseAt(t *testing.T) {
	s := newStand()
	claim := func(key interlock.Key, mode interlock.Mode) interlock.LeaseID {
		id := s.id()
		head := s.head(interlock.SessionID{})
		head.Actor = "swarm"
		s.step(&engine.Acquire{
			Head: head, ID: id, Agent: "agent", LeaseRequest: interlock.LeaseRequest{
				Claims: []interlock.Claim{{Key: key, Mode: mode}}, Purpose: "late fee",
			},
		})
		s.want(t, engine.Granted)
		return id
	}
	namespace := s.head(interlock.SessionID{}).Namespace
	held := claim("repo:web", interlock.Exclusive)
	claim("shared:1", interlock.Shared)
	claim("below:1/deep", interlock.Exclusive)
	for key, want := range map[interlock.Key]interlock.LeaseID{
		"repo:web": held, "repo:web/src": {}, "shared:1": {}, "below:1": {}, "free:1": {},
	} {
		l, _, ok, err := s.e.LeaseAt(namespace, key)
		if err != nil || ok != (want != interlock.LeaseID{}) || l.ID != want {
			t.Errorf("%s: %v %t %v, want %v", key, l.ID, ok, err, want)
		}
	}
	l, credential, _, _ := s.e.LeaseAt(namespace, "repo:web")
	if l.Purpose != "late fee" || l.Agent != "agent" || credential != "swarm" {
		t.Errorf("%+v under %q", l, credential)
	}
	if _, _, _, err := s.e.LeaseAt(namespace, "a//b"); err == nil {
		t.Error("a//b is a key")
	}
	if _, _, ok, err := s.e.LeaseAt("other", "repo:web"); ok || err != nil {
		t.Errorf("another namespace: %t %v", ok, err)
	}
	s.step(&engine.Release{Head: s.head(interlock.SessionID{}), Lease: held})
	if _, _, ok, _ := s.e.LeaseAt(namespace, "repo:web"); ok {
		t.Error("the lease is there after its release")
	}
}
