package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// commitOp writes with what was read.
func commitOp(slot uint32, seq uint64, reads []interlock.Read, writes ...interlock.Write) proto.Op {
	return proto.Op{
		Kind: proto.OpCommit, Slot: slot, Seq: seq,
		Commit: &interlock.CommitRequest{Flow: "f", Note: fmt.Sprint("commit ", seq), Reads: reads, Writes: writes},
	}
}

func putOf(key interlock.Key, body string) interlock.Write {
	return interlock.Write{Key: key, Op: interlock.Put, Body: []byte(body)}
}

func readOp(seq uint64, bodies bool, keys ...interlock.Key) proto.Op {
	return proto.Op{Kind: proto.OpReadState, Seq: seq, Bodies: bodies, State: &proto.StateQuery{Keys: keys}}
}

// bodies returns the bodies of documents, one after the other.
func bodies(list []interlock.Document) (text string) {
	for i := range list {
		text += fmt.Sprintf("%s@%d=%s ", list[i].Key, list[i].Version, list[i].Body)
	}
	return strings.TrimSpace(text)
}

func TestCommitsOnTheStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(
		readOp(10, true, "a", "b"),
		commitOp(1, 3, []interlock.Read{{Key: "a", Absent: true}}, putOf("a", `{"n":1}`), putOf("b", `2`)),
		readOp(11, true, "a", "b"),
		commitOp(
			1, 4, []interlock.Read{{Key: "a", Version: 1}}, putOf("a", `{"n":3}`),
			interlock.Write{Key: "c", Op: interlock.Add, Delta: 5},
		),
		readOp(12, false, "a"),
	)
	if r := f.want(10, proto.Done, ""); r.Version != 0 || len(r.Documents) != 2 || !r.Documents[0].Absent {
		t.Errorf("before all: %+v", r)
	}
	if r := f.want(3, proto.Done, ""); r.Version != 1 || bodies(r.Documents) != "a@1= b@1=" || r.Index == 0 {
		t.Errorf("the first commit: %+v", r)
	}
	// A query sees what came before it on the stream, and nothing that came after.
	if r := f.want(11, proto.Done, ""); r.Version != 1 || bodies(r.Documents) != `a@1={"n":1} b@1=2` ||
		r.Documents[0].Agent != "agent 1" || r.Documents[0].Note != "commit 3" {
		t.Errorf("after the first: %+v", r)
	}
	if r := f.want(4, proto.Done, ""); r.Version != 2 || bodies(r.Documents) != "a@2= c@2=5" {
		t.Errorf("the second commit: %+v", r)
	}
	if r := f.want(12, proto.Done, ""); bodies(r.Documents) != "a@2=" || r.Documents[0].Size != 7 {
		t.Errorf("without bodies: %+v", r)
	}

	// A repeated operation happens once.
	f.send(commitOp(
		1, 4, []interlock.Read{{Key: "a", Version: 1}}, putOf("a", `{"n":3}`),
		interlock.Write{Key: "c", Op: interlock.Add, Delta: 5},
	))
	if r := f.want(4, proto.Done, ""); r.Version != 2 {
		t.Errorf("repeated: %+v", r)
	}

	f.send(commitOp(1, 5, []interlock.Read{{Key: "a", Version: 1}}, putOf("a", `{"n":9}`)))
	r := f.want(5, proto.Refused, interlock.CodeStale)
	if p := r.Packet; p == nil || len(p.Changes) != 1 || !strings.Contains(p.Message, "commit 4") ||
		p.Changes[0].Diff.Kind != interlock.JSONPatch {
		t.Fatalf("the packet: %+v", r.Packet)
	}
	if c := r.Packet.Changes[0]; !c.Known || c.Then.Version != 1 || c.Now.Version != 2 || c.Writes != 1 ||
		!strings.Contains(c.Diff.Text, "3") {
		t.Errorf("the change: %+v", c)
	}
	if r.Advice == nil || r.Advice.Action != interlock.ActReRead {
		t.Errorf("the advice: %+v", r.Advice)
	}

	f.send(
		proto.Op{Kind: proto.OpReadHistory, Seq: 13, Key: "a", Bodies: true},
		proto.Op{Kind: proto.OpReadHistory, Seq: 14, Key: "a"},
		proto.Op{Kind: proto.OpReadState, Seq: 15, LeaseRequest: interlock.LeaseRequest{
			AsOf: 1,
		}, Bodies: true, State: &proto.StateQuery{Keys: []interlock.Key{"a", "c"}}},
		proto.Op{Kind: proto.OpReadState, Seq: 16, LeaseRequest: interlock.LeaseRequest{
			AsOf: 9,
		}, State: &proto.StateQuery{Keys: []interlock.Key{"a"}}},
		readOp(17, true, "not a key\n"),
	)
	if r := f.want(13, proto.Done, ""); bodies(r.Documents) != `a@2={"n":3} a@1={"n":1}` || r.More {
		t.Errorf("the history: %+v", r)
	}
	if r := f.want(14, proto.Done, ""); bodies(r.Documents) != `a@2= a@1=` {
		t.Errorf("the history without bodies: %+v", r)
	}
	if r := f.want(15, proto.Done, ""); bodies(r.Documents) != `a@1={"n":1} c@0=` || !r.Documents[1].Absent ||
		r.Version != 2 {
		t.Errorf("as of the first commit: %+v", r)
	}
	f.want(16, proto.Refused, interlock.CodeFutureVersion)
	f.want(17, proto.Refused, interlock.CodeInvalidKey)
}

// Documents and effects need no session.
func TestStateWithoutASession(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.send(
		commitOp(0, 1, nil, putOf("k", "1")),
		proto.Op{Kind: proto.OpClaimEffect, Seq: 2, LeaseRequest: interlock.LeaseRequest{
			Terms: interlock.Terms{TTL: time.Second},
		}, Effect: &proto.EffectOp{Tool: "t", Target: "k"}},
		readOp(3, true, "k"),
	)
	if r := f.want(1, proto.Done, ""); r.Version != 1 {
		t.Errorf("committed: %+v", r)
	}
	r := f.want(2, proto.Done, "")
	if len(r.Effects) != 1 || r.Effects[0].ExpiresIn != time.Second ||
		r.Effects[0].Action != `{"arguments":{},"target":"k","tool":"t"}` {
		t.Errorf("claimed: %+v", r.Effects)
	}
	if r := f.want(3, proto.Done, ""); bodies(r.Documents) != "k@1=1" || r.Documents[0].Session != "" {
		t.Errorf("read: %+v", r)
	}
	f.send(proto.Op{
		Kind: proto.OpSettleEffect, Seq: 4, ID: r.Effects[0].ID, Effect: &proto.EffectOp{Reason: "not needed"},
	})
	f.want(4, proto.Done, "")
}

func TestListsOfDocuments(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(commitOp(1, 3, nil, putOf("p:1", "1"), putOf("p:2", "2"), putOf("p:3", "3"), putOf("q", "4")))
	f.want(3, proto.Done, "")
	list := func(seq uint64, after interlock.Key) proto.Op {
		return proto.Op{Kind: proto.OpReadState, Seq: seq, LeaseRequest: interlock.LeaseRequest{
			Prefix: "p:",
		}, Bodies: true, State: &proto.StateQuery{After: after, Limit: 2}}
	}
	f.send(list(4, ""), list(5, "p:2"))
	if r := f.want(4, proto.Done, ""); bodies(r.Documents) != "p:1@1=1 p:2@1=2" || !r.More || r.Version != 1 {
		t.Errorf("the first page: %+v", r)
	}
	if r := f.want(5, proto.Done, ""); bodies(r.Documents) != "p:3@1=3" || r.More {
		t.Errorf("the second page: %+v", r)
	}
}

// A lease that is granted after the state moved reports it.
func TestGrantsTellWhatMoved(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(commitOp(1, 3, nil, putOf("k", "1")))
	f.want(3, proto.Done, "")
	f.send(commitOp(1, 4, []interlock.Read{{Key: "k", Version: 1}}, putOf("k", "2")))
	f.want(4, proto.Done, "")
	f.send(commitOp(1, 5, []interlock.Read{{Key: "k", Version: 2}}, putOf("k", "3")))
	f.want(5, proto.Done, "")
	late := acquireOp(1, 6, "k")
	late.AsOf = 1
	f.send(late)
	r := f.want(6, proto.Granted, "")
	if r.Packet == nil || len(r.Packet.Changes) != 1 || r.Packet.Changes[0].Now.Version != 3 || !r.Lease.Changed ||
		r.Lease.Stale != nil {
		t.Fatalf("the grant: %+v", r)
	}
	if c := r.Packet.Changes[0]; c.Writes != 2 || len(c.Between) != 1 || c.Between[0].Version != 2 ||
		c.Between[0].Note != "commit 4" || c.Left != 0 {
		t.Errorf("who wrote in between: %+v", c)
	}
}

// So do the documents at the keys, if they are asked for, also by a push.
func TestDocumentsWithAGrantOnTheStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(commitOp(1, 3, nil, putOf("k", "1")))
	f.want(3, proto.Done, "")
	ask := func(seq uint64, flow string) proto.Op {
		op := acquireOp(1, seq, "k")
		op.Documents, op.Flow, op.OnConflict = true, flow, interlock.Wait
		return op
	}
	f.send(ask(4, "one"))
	r := f.want(4, proto.Granted, "")
	if r.Version != 1 || bodies(r.Documents) != "k@1=1" || r.More || r.Lease.Documents != nil {
		t.Errorf("the grant: %+v", r)
	}
	f.send(ask(5, "two"))
	f.want(5, proto.Queued, "")
	write := commitOp(1, 6, nil, putOf("k", "2"))
	write.Commit.Leases = []interlock.LeaseID{r.Lease.ID}
	f.send(write)
	f.want(6, proto.Done, "")
	f.send(proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 7, ID: r.Lease.ID})
	f.want(7, proto.Done, "")
	if r := f.want(5, proto.Granted, ""); r.Version != 2 || bodies(r.Documents) != "k@2=2" ||
		len(r.Documents[0].Earlier) != 1 || r.Documents[0].Earlier[0].Version != 1 {
		t.Errorf("the later grant: %+v", r)
	}
}

func TestEffectsOnTheStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.open(2)
	claim := func(slot uint32, seq uint64, arguments string) proto.Op {
		return proto.Op{Kind: proto.OpClaimEffect, Slot: slot, Seq: seq, LeaseRequest: interlock.LeaseRequest{
			Flow: "f",
		}, Effect: &proto.EffectOp{
			Tool: "stripe.charge", Target: "account:1", Arguments: []byte(arguments),
		}}
	}
	f.send(claim(1, 3, `{"cents": 300, "why": "fee"}`))
	r := f.want(3, proto.Done, "")
	if len(r.Effects) != 1 || r.Effects[0].ID.IsZero() || r.Effects[0].State != interlock.EffectClaimed ||
		r.Effects[0].Agent != "agent 1" {
		t.Fatalf("claimed: %+v", r.Effects)
	}
	id, digest := r.Effects[0].ID, r.Effects[0].Digest

	// The same action, written otherwise.
	f.send(claim(2, 3, `{"why":"fee","cents":3e2}`))
	if r = f.want(3, proto.Refused, interlock.CodeEffectClaimed); len(r.Effects) != 1 || !r.Effects[0].ID.IsZero() ||
		r.Effects[0].Digest != digest {
		t.Errorf("claimed by another: %+v", r.Effects)
	}
	f.send(proto.Op{
		Kind: proto.OpSettleEffect, Slot: 1, Seq: 4, ID: id,
		Effect: &proto.EffectOp{State: interlock.EffectDone, Result: []byte(`"ch_1"`)},
	})
	f.want(4, proto.Done, "")
	f.send(
		claim(2, 4, `{"why":"fee","cents":300}`),
		proto.Op{Kind: proto.OpGetEffect, Seq: 20, Effect: &proto.EffectOp{Digest: digest}},
		proto.Op{Kind: proto.OpGetEffect, Seq: 21, Effect: &proto.EffectOp{Digest: [32]byte{1}}},
		proto.Op{Kind: proto.OpListEffects, Seq: 22, Effect: &proto.EffectOp{State: interlock.EffectDone}},
		proto.Op{Kind: proto.OpListEffects, Seq: 23, Effect: &proto.EffectOp{State: interlock.EffectUnknown}},
		proto.Op{Kind: proto.OpGetContention, Seq: 24},
	)
	for _, seq := range []uint64{4, 20} {
		if r := f.want(seq, proto.Done, ""); len(r.Effects) != 1 || r.Effects[0].Result != `"ch_1"` ||
			r.Effects[0].State != interlock.EffectDone {
			t.Errorf("answer %d: %+v", seq, r)
		}
	}
	f.want(21, proto.Refused, interlock.CodeUnknownEffect)
	if r := f.want(22, proto.Done, ""); len(r.Effects) != 1 {
		t.Errorf("done: %+v", r)
	}
	if r := f.want(23, proto.Done, ""); len(r.Effects) != 0 {
		t.Errorf("unknown: %+v", r)
	}
	f.want(24, proto.Done, "")
	f.send(claim(2, 5, `{"cents":0.10000000000000000001}`))
	f.want(5, proto.Refused, interlock.CodeInvalidRequest)
}

// Many large documents on one stream arrive, in frames that a client accepts.
func TestLargeDocuments(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	large := bytes.Repeat([]byte("x"), interlock.MaxDocumentBytes)
	keys := make([]interlock.Key, 4)
	for i := range keys {
		keys[i] = interlock.Key(fmt.Sprint("k", i))
		f.send(commitOp(
			1, uint64(3+i), nil, interlock.Write{Key: keys[i], Op: interlock.Put, ContentType: "text/plain", Body: large},
		))
		f.want(uint64(3+i), proto.Done, "")
	}
	const many = 3 * 64 // more than there may be at once
	reads := make([]proto.Op, 0, many)
	for i := range uint64(many) {
		reads = append(reads, readOp(100+i, true, keys...))
	}
	f.send(reads...)
	for i := range uint64(many) {
		if r := f.want(100+i, proto.Done, ""); len(r.Documents) != len(keys) || len(r.Documents[3].Body) != len(large) {
			t.Fatalf("answer %d has %d documents", i, len(r.Documents))
		}
	}
	f.send(commitOp(1, 7, nil, putOf("one more", `"`+string(large)+`"`)))
	f.want(7, proto.Refused, interlock.CodeBodyTooLarge)
	f.send(commitOp(1, 8, nil, putOf("k4", "1")), readOp(300, true, append(keys, "k4")...))
	f.want(8, proto.Done, "")
	f.want(300, proto.Refused, interlock.CodeBodyTooLarge)
}

// A client that asks for more than it reads is not read from, so that its answers do not pile up;
// when it reads again, all are answered.
func TestReadsOfWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStreamDoor(t, server.StreamConfig{})
		f := d.dial()
		f.open(1)
		for i := range 4 {
			f.send(commitOp(1, uint64(3+i), nil, interlock.Write{
				Key: interlock.Key(fmt.Sprint("k", i)), Op: interlock.Put, ContentType: "text/plain",
				Body: make([]byte, interlock.MaxDocumentBytes),
			}))
			f.want(uint64(3+i), proto.Done, "")
		}
		const many = 100
		sent := make(chan uint64, many)
		go func() {
			for seq := uint64(100); seq < 100+many; seq++ {
				if err := f.link.Send(&proto.ClientFrame{Ops: []proto.Op{readOp(seq, true, "k0", "k1", "k2", "k3")}}); err != nil {
					t.Error(err)
				}
				sent <- seq
			}
		}()
		synctest.Wait()
		// How large an answer is shows when it is there, so as many as may be at once are
		// taken at most, and what lies between the two ends.
		if n := len(sent); n < 4 || n > 64+8 {
			t.Errorf("%d questions of 4 MiB were taken", n)
		}
		for seq := uint64(100); seq < 100+many; seq++ {
			f.want(seq, proto.Done, "")
		}
	})
}
