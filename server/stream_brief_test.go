package server_test

import (
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// A grant to a client that asked to be brief has nothing in it that was asked for, as long as
// nothing of it differs.
func TestBriefGrant(t *testing.T) {
	claim := func(key interlock.Key) []interlock.Claim {
		return []interlock.Claim{{Key: key, Mode: interlock.Exclusive}}
	}
	for name, c := range map[string]struct {
		op      proto.Op
		asAsked bool
	}{
		"as asked": {proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{
			Claims: claim("k"), Flow: "f", Purpose: "p",
		}}, true},
		"not brief": {proto.Op{LeaseRequest: interlock.LeaseRequest{Claims: claim("k"), Flow: "f"}}, false},
		"a default mode": {proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: "k"}}, Flow: "f",
		}}, false},
		"a default flow": {proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{Claims: claim("k")}}, false},
		"one of several": {proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{
			Any: true, Claims: append(claim("k"), claim("l")...), Flow: "f",
		}}, false},
		"nobody's session": {
			proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{Claims: claim("k"), Flow: "f"}}, false,
		},
		"what is held": {
			proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{Claims: claim("held"), Flow: "f"}}, true,
		},
		"a part of the one": {
			proto.Op{Brief: true, LeaseRequest: interlock.LeaseRequest{Claims: claim("both"), Flow: "f"}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStreamDoor(t, server.StreamConfig{}).dial()
			f.open(1)
			f.send(proto.Op{Kind: proto.OpAcquire, Slot: 1, Seq: 3, LeaseRequest: interlock.LeaseRequest{
				Flow: "f", Claims: claim("held"),
			}})
			f.want(3, proto.Granted, "")
			f.send(proto.Op{Kind: proto.OpAcquire, Slot: 1, Seq: 4, LeaseRequest: interlock.LeaseRequest{
				Flow: "f", Claims: append(claim("both"), claim("too")...),
			}})
			f.want(4, proto.Granted, "")
			op := c.op
			op.Kind, op.Slot, op.Seq = proto.OpAcquire, 1, 5
			if name == "nobody's session" {
				op.Slot = 0
			}
			f.send(op)
			r := f.want(5, proto.Granted, "")
			l := &r.Lease
			told := len(l.Claims) > 0 && (l.Flow != "" && l.Agent != "" || op.Slot == 0)
			left := l.Claims == nil && l.Agent+l.Session+l.Flow+l.Purpose == ""
			if l.ID.IsZero() || l.Fence == 0 || l.TTL == 0 || l.State != interlock.Held {
				t.Errorf("what nobody else can know is missing: %+v", l)
			}
			if r.AsAsked != c.asAsked || c.asAsked && !left || !c.asAsked && !told {
				t.Errorf("as asked: %t, wanted %t: %+v", r.AsAsked, c.asAsked, l)
			}
		})
	}
}

// A client that asked to be brief and has to wait receives its place and its blockers, but not in
// words; what is refused is explained all the same.
func TestBriefWait(t *testing.T) {
	f := newStreamDoor(t, server.StreamConfig{}).dial()
	f.open(1)
	held := acquireOp(1, 3, "k")
	held.Flow = "a"
	f.send(held)
	lease := f.want(3, proto.Granted, "").Lease
	for seq, brief := range map[uint64]bool{4: false, 5: true} {
		op := acquireOp(1, seq, "k")
		op.Flow, op.Brief = "b", brief
		if brief {
			op.Flow = "c"
		}
		f.send(op)
		r := f.want(seq, proto.Queued, "")
		if (r.Advice == nil) != brief || r.Ticket == nil || r.Conflict == nil || len(r.Conflict.Holders) != 1 {
			t.Errorf("brief %t: %+v", brief, r)
		}
		op.Seq, op.OnConflict = seq+10, 0
		op.Flow += "'"
		f.send(op)
		if r := f.want(seq+10, proto.Refused, interlock.CodeHeld); r.Advice == nil {
			t.Errorf("brief %t: a refusal without advice", brief)
		}
	}
	f.send(proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 20, ID: lease.ID})
	for range 2 {
		r := f.next()
		if r.Seq == 20 {
			continue
		}
		brief := r.Seq == 5
		if r.Outcome != proto.Granted || len(r.Lease.Claims) != 1 || !r.Lease.Changed || (r.Advice == nil) != brief {
			t.Errorf("the end of the wait: %+v", r)
		}
	}
}
