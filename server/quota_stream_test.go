package server_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// Operations of the stream count like calls: those that only help come through, and
// the others are answered with when to come back.
func TestQuotaOfTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStreamDoor(t, server.StreamConfig{})
		configure := &engine.Configure{
			Head:     engine.Head{Namespace: interlock.DefaultNamespace},
			Settings: interlock.Settings{Quota: interlock.Quota{Requests: 4}},
		}
		if eff, _, err := d.shard.Do(context.Background(), configure); err != nil || eff.Outcome != engine.Done {
			t.Fatal(err, prose.Sentence(eff.Message))
		}
		f := d.dial()
		f.open(1) // two operations
		f.send(acquireOp(1, 3, "a"), acquireOp(1, 4, "b"), acquireOp(1, 5, "c"))
		r := f.want(5, proto.Refused, interlock.CodeQuota) // at the door, so before the others
		lease := f.want(3, proto.Granted, "").Lease.ID
		f.want(4, proto.Granted, "")
		if !strings.Contains(r.Message, "4 requests a second") || r.Advice == nil || r.Advice.RetryAfter == 0 {
			t.Errorf("refused with %+v, advice %+v", r, r.Advice)
		}
		f.send(
			proto.Op{Kind: proto.OpHeartbeat, Slot: 1, Seq: 6},
			proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 7, ID: lease},
			proto.Op{
				Kind: proto.OpSettleEffect, Slot: 1, Seq: 8, ID: [16]byte{1}, Effect: &proto.EffectOp{State: interlock.EffectDone},
			},
		)
		f.want(6, proto.Done, "")
		f.want(7, proto.Done, "")
		f.want(8, proto.Refused, interlock.CodeUnknownEffect)
	})
}
