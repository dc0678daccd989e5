package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/test/protomessage"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// streamDoor is a server that tests speak to frame by frame.
type streamDoor struct {
	t     *testing.T
	shard *shard.Shard
	srv   *server.Server
	*server.Streams
}

func newStreamDoor(t *testing.T, cfg server.StreamConfig, maxWaiting ...int) *streamDoor {
	t.Helper()
	j, err := (&memjournal.Store{}).Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d := &streamDoor{t: t}
	if d.shard, err = shard.Open(
		context.Background(), shard.Config{Journal: j, MaxWaiting: append(maxWaiting, 0)[0]},
	); err != nil {
		t.Fatal(err)
	}
	if d.srv, err = server.New(server.Config{
		Shard: d.shard, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}); err != nil {
		t.Fatal(err)
	}
	d.Streams = server.NewStreams(d.srv, cfg)
	t.Cleanup(func() {
		d.Cut(nil)
		if err := d.shard.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// frames is a raw client: it sends operations and reads replies one by one.
type frames struct {
	t    *testing.T
	link proto.ClientLink
	got  []proto.Reply
	away *proto.GoAway
}

func (d *streamDoor) dial() *frames {
	d.t.Helper()
	link, err := d.Dial(context.Background(), proto.Hello{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { link.Close(nil) })
	return &frames{t: d.t, link: link}
}

func (f *frames) send(ops ...proto.Op) {
	f.t.Helper()
	if err := f.link.Send(&proto.ClientFrame{Ops: ops}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *frames) next() proto.Reply {
	f.t.Helper()
	for len(f.got) == 0 {
		var frame proto.ServerFrame
		if err := f.link.Recv(&frame); err != nil {
			f.t.Fatal(err)
		}
		f.got = append(f.got, frame.Replies...)
		if frame.GoAway != nil {
			f.away = frame.GoAway
		}
	}
	r := f.got[0]
	f.got = f.got[1:]
	return r
}

func (f *frames) want(seq uint64, outcome interlock.Outcome, code interlock.Code) proto.Reply {
	f.t.Helper()
	r := f.next()
	if r.Seq != seq || r.Outcome != outcome || r.Code != code {
		f.t.Fatalf("wanted answer %d with outcome %d %q, got %+v", seq, outcome, code, r)
	}
	return r
}

// open opens a session in a slot and attaches it.
func (f *frames) open(slot uint32) interlock.SessionID {
	f.t.Helper()
	f.send(proto.Op{Kind: proto.OpOpen, Slot: slot, Seq: 1, Agent: fmt.Sprint("agent ", slot)})
	id := f.want(1, proto.Done, "").Session.ID
	f.send(proto.Op{Kind: proto.OpAttach, Slot: slot, Seq: 2, ID: id})
	f.want(2, proto.Done, "")
	return id
}

func acquireOp(slot uint32, seq uint64, key interlock.Key) proto.Op {
	return proto.Op{
		Kind: proto.OpAcquire, Slot: slot, Seq: seq, LeaseRequest: interlock.LeaseRequest{
			OnConflict: interlock.Wait,
			Claims:     []interlock.Claim{{Key: key, Mode: interlock.Exclusive}},
		},
	}
}

func TestSeveralSessionsOnOneStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	first, second := f.open(1), f.open(2)
	if first == second {
		t.Fatal("one session for two slots")
	}
	f.send(acquireOp(1, 3, "k"), acquireOp(2, 3, "k"))
	lease := f.want(3, proto.Granted, "")
	if lease.Slot != 1 {
		t.Errorf("granted to slot %d", lease.Slot)
	}
	if r := f.want(3, proto.Queued, ""); r.Slot != 2 || r.Ticket.Position != 1 || r.Advice == nil {
		t.Errorf("got %+v", r)
	}
	f.send(proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 4, ID: lease.Lease.ID})
	f.want(4, proto.Done, "")
	if r := f.want(3, proto.Granted, ""); r.Slot != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestEveryOperation(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(acquireOp(1, 3, "k"))
	lease := f.want(3, proto.Granted, "").Lease
	f.send(
		proto.Op{Kind: proto.OpHeartbeat, Slot: 1, Seq: 4, Progress: "1/2"},
		proto.Op{Kind: proto.OpGetLease, Slot: 1, Seq: 5, ID: lease.ID},
		proto.Op{Kind: proto.OpRenew, Slot: 1, Seq: 6, ID: lease.ID},
		proto.Op{Kind: proto.OpCheckFence, Slot: 1, Seq: 7, Key: "k", Fence: lease.Fence},
		proto.Op{Kind: proto.OpCheckFence, Slot: 0, Seq: 8, Key: "k", Fence: lease.Fence + 1},
		proto.Op{Kind: proto.OpPoll, Slot: 1, Seq: 9, ID: lease.ID}, // the lease's bits are the ticket's
		proto.Op{Kind: proto.OpLeave, Slot: 1, Seq: 10, ID: lease.ID},
		proto.Op{Kind: proto.OpGetLease, Slot: 1, Seq: 11, ID: lease.ID},
		proto.Op{Kind: 99, Slot: 1, Seq: 12},
		proto.Op{Kind: proto.OpHeartbeat, Slot: 7, Seq: 13},
		proto.Op{Kind: proto.OpClose, Slot: 1, Seq: 14},
		acquireOp(1, 15, "k"),
	)
	answers := map[uint64]proto.Reply{}
	for range 12 {
		r := f.next()
		answers[r.Seq] = r
	}
	for seq, want := range map[uint64]struct {
		outcome interlock.Outcome
		code    interlock.Code
	}{
		4: {proto.Done, ""}, 5: {proto.Granted, ""}, 6: {proto.Granted, ""}, 7: {proto.Done, ""},
		8: {proto.Refused, interlock.CodeFenced},
		9: {proto.Granted, ""}, 10: {proto.Done, ""}, 11: {proto.Refused, interlock.CodeLeft},
		12: {proto.Refused, interlock.CodeUnsupported}, 13: {proto.Refused, interlock.CodeUnknownSession},
		14: {proto.Done, ""}, 15: {proto.Refused, interlock.CodeSessionEnded},
	} {
		if r := answers[seq]; r.Outcome != want.outcome || r.Code != want.code {
			t.Errorf("operation %d: wanted outcome %d %q, got %+v", seq, want.outcome, want.code, r)
		}
	}
}

// A renewal with a ttl changes that of the lease once, however often its number comes.
func TestRenewalChangesTheTTL(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(acquireOp(1, 3, "k"))
	lease := f.want(3, proto.Granted, "").Lease
	renew := func(seq uint64, ttl time.Duration) proto.Op {
		op := proto.Op{Kind: proto.OpRenew, Slot: 1, Seq: seq, ID: lease.ID}
		op.TTL = ttl
		return op
	}
	ops := []proto.Op{renew(4, 20*time.Second), renew(5, 0), renew(6, 10*time.Second), renew(4, 20*time.Second)}
	for i, want := range []time.Duration{20 * time.Second, 20 * time.Second, 10 * time.Second, 10 * time.Second} {
		f.send(ops[i])
		if r := f.want(ops[i].Seq, proto.Granted, ""); r.Lease.TTL != want || r.Lease.ExpiresIn > want {
			t.Errorf("%v: %+v, want a ttl of %v", ops[i], r.Lease, want)
		}
	}
	f.send(renew(7, time.Millisecond), renew(6, time.Minute))
	f.want(7, proto.Refused, interlock.CodeInvalidTTL)
	f.want(6, proto.Refused, interlock.CodeRequestIDReused)
}

func TestSlotsAreBoundOnce(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(proto.Op{Kind: proto.OpOpen, Slot: 1, Seq: 3}, proto.Op{Kind: proto.OpOpen, Slot: 0, Seq: 4})
	f.want(3, proto.Refused, interlock.CodeInvalidRequest)
	f.want(4, proto.Refused, interlock.CodeInvalidRequest)
	f.send(proto.Op{Kind: proto.OpAttach, Slot: 1, Seq: 5, ID: [16]byte{1}})
	f.want(5, proto.Refused, interlock.CodeInvalidRequest)
	f.send(proto.Op{Kind: proto.OpAttach, Slot: 9, Seq: 6, ID: [16]byte{1}})
	f.want(6, proto.Refused, interlock.CodeUnknownSession)
}

// The same number gets the same answer, on another stream too.
func TestSameNumberSameAnswer(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	id := f.open(1)
	f.send(acquireOp(1, 3, "k"))
	lease := f.want(3, proto.Granted, "").Lease
	f.link.Close(nil)
	f = d.dial()
	f.send(
		proto.Op{Kind: proto.OpAttach, Slot: 5, Seq: 4, ID: id}, acquireOp(5, 3, "k"), acquireOp(5, 6, "other"),
		acquireOp(5, 3, "another"),
	)
	f.want(4, proto.Done, "")
	if again := f.want(3, proto.Granted, "").Lease; again.ID != lease.ID || again.Fence != lease.Fence {
		t.Errorf("first %+v, then %+v", lease, again)
	}
	f.want(6, proto.Granted, "")
	f.want(3, proto.Refused, interlock.CodeRequestIDReused)
}

// A stream that ends leaves no waiter that would be granted without a client.
func TestEndOfAStreamDetachesItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStreamDoor(t, server.StreamConfig{})
		holder, gone, patient := d.dial(), d.dial(), d.dial()
		holder.open(1)
		gone.open(1)
		patient.open(1)
		holder.send(acquireOp(1, 3, "k"))
		lease := holder.want(3, proto.Granted, "").Lease
		gone.send(acquireOp(1, 3, "k"))
		gone.want(3, proto.Queued, "")
		patient.send(acquireOp(1, 3, "k"))
		patient.want(3, proto.Queued, "")
		gone.link.Close(nil)
		synctest.Wait()
		holder.send(proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 4, ID: lease.ID})
		holder.want(4, proto.Done, "")
		began := time.Now()
		patient.want(3, proto.Granted, "")
		if waited := time.Since(began); waited > interlock.OfferTTL+time.Second {
			t.Errorf("the offer to the one who left was open for %v", waited)
		}
	})
}

// A client that never reads is cut, and holds up no other meanwhile.
func TestClientThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStreamDoor(t, server.StreamConfig{WriteTimeout: 30 * time.Second})
		deaf, other := d.dial(), d.dial()
		deaf.open(1)
		other.open(1)
		began := time.Now()
		for i := 0; ; i++ {
			var err error
			if err = deaf.link.Send(&proto.ClientFrame{
				Ops: []proto.Op{{Kind: proto.OpHeartbeat, Slot: 1, Seq: uint64(i + 3)}},
			}); err != nil {
				if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeOverloaded {
					t.Errorf("cut with %v", err)
				}
				break
			}
			if i%100 == 0 {
				other.send(proto.Op{Kind: proto.OpHeartbeat, Slot: 1, Seq: uint64(i + 3)})
				other.want(uint64(i+3), proto.Done, "")
			}
		}
		if took := time.Since(began); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("cut after %v", took)
		}
	})
}

// What comes to a client that does not read, without being asked for in that
// moment, is bounded too.
func TestOutgoingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 100
		d := newStreamDoor(t, server.StreamConfig{MaxOutgoing: most, WriteTimeout: time.Hour})
		holder, deaf := d.dial(), d.dial()
		id := holder.open(1)
		deaf.open(1)
		holder.send(acquireOp(1, 3, "k"))
		holder.want(3, proto.Granted, "")
		seq := uint64(3)
		for range 5 * most {
			op := acquireOp(1, seq, "k")
			op.Flow, op.Claims[0].Mode = fmt.Sprint(seq), interlock.Shared
			deaf.send(op)
			deaf.want(seq, proto.Queued, "")
			seq++
		}
		// All waits end in one step, which is more than may lie around.
		if _, _, err := d.shard.Do(
			context.Background(), &engine.CloseSession{Head: engine.Head{Namespace: "default", Session: id}},
		); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		n := 0
		for {
			var frame proto.ServerFrame
			err := deaf.link.Recv(&frame)
			if err != nil {
				if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeOverloaded {
					t.Errorf("cut with %v", err)
				}
				break
			}
			n += len(frame.Replies)
		}
		if n > 3*most {
			t.Errorf("%d answers lay around", n)
		}
	})
}

// More than the shard takes at once arrives nevertheless, by and by.
func TestOverloadHoldsTheStreamUp(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{}, 4)
	f := d.dial()
	f.open(1)
	frame := proto.ClientFrame{}
	const n = 100
	for i := range n {
		frame.Ops = append(frame.Ops, proto.Op{Kind: proto.OpHeartbeat, Slot: 1, Seq: uint64(3 + i)})
	}
	f.send(frame.Ops...)
	for i := range n {
		f.want(uint64(3+i), proto.Done, "")
	}
}

// The same over gRPC, where a client that neither reads nor hears that it was cut
// costs one stream of its own connection and nothing of the server's.
func TestClientThatNeverReadsOverGRPC(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{WriteTimeout: time.Second, MaxStreams: 1})
	stream, conn := d.overGRPC(nil)
	const op = `ops { seq: %d check_fence { key: "k" fence: 1 } }`
	if err := stream.SendMsg(protomessage.ClientFrame(t, fmt.Sprintf(op, 1))); err != nil {
		t.Fatal(err)
	}
	if err := stream.Recv(&struct{}{}); err != nil { // the stream has been admitted
		t.Fatal(err)
	}
	var ops strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&ops, op, i+1)
	}
	frame := protomessage.ClientFrame(t, ops.String())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for stream.SendMsg(frame) == nil {
		}
	}()
	for { // until the server has room for another
		link, err := d.Dial(context.Background(), proto.Hello{})
		if err == nil {
			link.Close(nil)
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	for {
		if err := stream.Recv(&struct{}{}); err != nil {
			if code := strings.Join(stream.Trailer().Get("interlock-code"), ""); code != string(interlock.CodeOverloaded) {
				t.Errorf("cut with %v and code %q", err, code)
			}
			break
		}
	}
	_ = conn.Close()
	<-sent
}

func TestTooManyStreams(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{MaxStreams: 2})
	d.dial()
	second := d.dial()
	if _, err := d.Dial(context.Background(), proto.Hello{}); codeOfError(err) != interlock.CodeTooManyStreams {
		t.Errorf("got %v", err)
	}
	second.link.Close(nil)
	for { // until the server has noticed
		if link, err := d.Dial(context.Background(), proto.Hello{}); err == nil {
			link.Close(nil)
			break
		}
		<-time.After(time.Millisecond)
	}
}

func TestDrainTellsClientsToComeBack(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(acquireOp(1, 3, "k"))
	lease := f.want(3, proto.Granted, "").Lease
	d.srv.Drain()
	if err := d.shard.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	for f.away == nil {
		var frame proto.ServerFrame
		if err := f.link.Recv(&frame); err != nil {
			t.Fatal(err)
		}
		f.away = frame.GoAway
	}
	if f.away.RetryAfter <= 0 || f.away.Message == "" {
		t.Errorf("go-away %+v", f.away)
	}
	f.send(acquireOp(1, 4, "other"), proto.Op{Kind: proto.OpRelease, Slot: 1, Seq: 5, ID: lease.ID})
	f.want(4, proto.Refused, interlock.CodeShuttingDown)
	f.want(5, proto.Done, "")
}

func codeOfError(err error) interlock.Code {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Code
	}
	return ""
}

// overGRPC opens a stream as a client in another language would, from what session.proto declares.
func (d *streamDoor) overGRPC(md metadata.MD) (*protomessage.Stream, *grpc.ClientConn) {
	d.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	rpc := d.Server()
	go func() { _ = rpc.Serve(l) }()
	d.t.Cleanup(rpc.Stop)
	conn, err := grpc.NewClient(
		"passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return protomessage.Open(metadata.NewOutgoingContext(context.Background(), md), d.t, conn), conn
}

func TestForeignClient(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	stream, _ := d.overGRPC(metadata.Pairs("interlock-namespace", "acme"))
	if err := stream.SendMsg(protomessage.ClientFrame(t, `ops { slot: 1 seq: 1 open { agent: "py" } }`)); err != nil {
		t.Fatal(err)
	}
	var frame struct {
		Epoch   uint64 `json:",string"`
		Replies []struct {
			Session struct{ Agent string }
			Lease   struct {
				ID      []byte
				Fence   uint64 `json:",string"`
				Purpose string
				Claims  []struct{ Mode string }
				Grace   int64 `json:",string"`
			}
		}
	}
	err := stream.Recv(&frame)
	if err != nil || len(frame.Replies) != 1 || frame.Replies[0].Session.Agent != "py" || frame.Epoch == 0 {
		t.Fatalf("got %+v, %v", frame, err)
	}
	if err := stream.SendMsg(protomessage.ClientFrame(t, `ops {
		slot: 1 seq: 2 acquire { claims { key: "k" } purpose: "from elsewhere" grace: -1 }
	}`)); err != nil {
		t.Fatal(err)
	}
	if err := stream.Recv(&frame); err != nil {
		t.Fatal(err)
	}
	lease := frame.Replies[0].Lease
	if lease.Fence == 0 || lease.Purpose != "from elsewhere" || len(lease.Claims) != 1 ||
		lease.Claims[0].Mode != "MODE_EXCLUSIVE" || len(lease.ID) != 16 || lease.Grace != 0 {
		t.Errorf("got %+v", lease)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.Recv(&frame); err != io.EOF {
		t.Errorf("the end was %v", err)
	}
}

func TestBadFramesEndTheStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	for name, bad := range map[string]struct {
		frame string
		md    metadata.MD
		code  interlock.Code
		grpc  grpccodes.Code
	}{
		"too large": {
			`ops { seq: 1 heartbeat { progress: "` + strings.Repeat("x", proto.MaxFrameBytes) + `" } }`, nil,
			interlock.CodeBodyTooLarge, grpccodes.InvalidArgument,
		},
		"an id that is none": {
			`ops { seq: 1 poll { ticket: "short" } }`, nil, interlock.CodeInvalidRequest, grpccodes.InvalidArgument,
		},
		"a bad namespace": {
			"", metadata.Pairs("interlock-namespace", "a b"), interlock.CodeInvalidNamespace, grpccodes.InvalidArgument,
		},
	} {
		stream, _ := d.overGRPC(bad.md)
		_ = stream.SendMsg(protomessage.ClientFrame(t, bad.frame))
		err := stream.Recv(&struct{}{})
		if status.Code(err) != bad.grpc || strings.Join(stream.Trailer().Get("interlock-code"), "") != string(bad.code) {
			t.Errorf("%s: got %v with trailer %v", name, err, stream.Trailer())
		}
	}
}

// Streams end while sessions open on them.
func TestStreamEndsDuringAnOpen(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	for range 200 {
		f := d.dial()
		f.send(proto.Op{Kind: proto.OpOpen, Slot: 1, Seq: 1, Agent: "brief"})
		f.link.Close(nil)
	}
	d.dial().open(1) // the server goes on
}
