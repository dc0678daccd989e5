package proto

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/interlockdev/interlock"
)

// Kept parts of a large operation, such as the key of a small document in it, do not keep the
// operation.
func TestLargeOpsAreNotKept(t *testing.T) {
	const ops = 32
	big := bytes.Repeat([]byte("x"), interlock.MaxDocumentBytes/2)
	var kept []string
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range ops {
		var in, out ClientFrame
		in.Ops = []Op{
			{Kind: OpAcquire, LeaseRequest: interlock.LeaseRequest{
				Flow: "flow", Purpose: string(big), Claims: []interlock.Claim{{Key: "k"}},
			}},
			{Kind: OpCommit, Commit: &interlock.CommitRequest{
				Flow: "flow", Note: "note",
				Reads: []interlock.Read{{Key: "read"}},
				Writes: []interlock.Write{
					{Key: "big", Op: interlock.Put, Body: big}, {Key: "small", Op: interlock.Put, ContentType: "text/plain"},
				},
			}},
			{Kind: OpClaimEffect, LeaseRequest: interlock.LeaseRequest{
				Flow: "flow",
			}, Effect: &EffectOp{Tool: "tool", Target: "target", Arguments: big}},
			{Kind: OpSettleEffect, Effect: &EffectOp{Result: big, Reason: "reason"}},
			{Kind: OpSubmitTask, LeaseRequest: interlock.LeaseRequest{
				Flow: "flow",
			}, Task: &TaskOp{Specs: []interlock.TaskSpec{{Queue: "q", Claims: []interlock.Claim{{Key: "k"}}, Payload: big}}}},
			{
				Kind: OpAckTask, Task: &TaskOp{Result: big},
				Commit: &interlock.CommitRequest{Note: "note", Reads: []interlock.Read{{Key: "read"}}},
			},
		}
		if err := out.Decode(in.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, out.Ops[0].Flow, string(out.Ops[0].Claims[0].Key))
		c := &out.Ops[1]
		kept = append(kept, c.Commit.Flow, c.Commit.Note, string(
			c.Commit.Reads[0].Key,
		), string(c.Commit.Writes[1].Key), c.Commit.Writes[1].ContentType,
			out.Ops[2].Flow, out.Ops[3].Effect.Reason,
			out.Ops[4].Flow, out.Ops[4].Task.Specs[0].Queue, string(out.Ops[4].Task.Specs[0].Claims[0].Key),
			out.Ops[5].Commit.Note, string(out.Ops[5].Commit.Reads[0].Key))
	}
	if after := heap(); after > before+ops*uint64(len(big))/4 {
		t.Errorf("%d short texts keep %d bytes", len(kept), after-before)
	}
	runtime.KeepAlive(kept)
}
