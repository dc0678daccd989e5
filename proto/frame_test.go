package proto

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// random fills any of this package's structs. Slices get up to two elements, and
// texts lengths on both sides of where a length takes another byte.
func random(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Earlier" {
				random(r, v.Field(i))
				continue
			}
			list := make([]interlock.Document, r.IntN(3)) // their own are never sent
			for k := range list {
				list[k].Version, list[k].Note = interlock.Version(r.Uint64()), "note"
			}
			if len(list) > 0 {
				v.Field(i).Set(reflect.ValueOf(list))
			}
		}
	case reflect.Slice:
		if n := r.IntN(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				random(r, v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(r.Uint32() % 256))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			if v.Elem().Kind() == reflect.Struct || r.IntN(4) > 0 { // a number that is 0 is not one that is missing
				random(r, v.Elem())
			}
		}
	case reflect.String:
		v.SetString(string(bytes.Repeat([]byte("é"), []int{0, 1, 5, 63, 64, 200, 9000}[r.IntN(7)])))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Uint32() >> (1 + r.IntN(31))))
		if v.Type() == reflect.TypeFor[time.Duration]() && r.IntN(5) == 0 {
			v.SetInt(-1)
		}
		if v.Type() == reflect.TypeFor[int64]() { // amounts, of either sign
			v.SetInt(int64(r.Uint64()) >> r.IntN(64))
		}
	case reflect.Int32:
		v.SetInt(int64(int32(r.Uint32()) >> r.IntN(32)))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(9)))
	case reflect.Uint32:
		v.SetUint(uint64(r.Uint32() >> r.IntN(32)))
	case reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	default:
		panic(v.Kind())
	}
}

func randomClientFrame(r *rand.Rand) *ClientFrame {
	f := &ClientFrame{}
	for kind := OpOpen; kind <= lastOp; kind++ {
		var o, kept Op
		random(r, reflect.ValueOf(&o).Elem())
		kept = Op{Kind: kind, Slot: o.Slot, Seq: o.Seq, Acked: o.Acked}
		switch kind {
		case OpOpen:
			kept.RequestID, kept.Agent, kept.TTL = o.RequestID, o.Agent, o.TTL
		case OpAttach, OpPoll, OpLeave, OpGetLease:
			kept.ID = o.ID
		case OpHeartbeat:
			kept.Progress, kept.Known = o.Progress, o.Known
		case OpAcquire:
			kept.LeaseRequest, kept.Brief = o.LeaseRequest, o.Brief
			kept.Priority *= []int{-1, 1}[r.IntN(2)]
		case OpRenew:
			kept.ID, kept.Progress, kept.TTL = o.ID, o.Progress, o.TTL
		case OpRelease:
			kept.ID, kept.Outcome, kept.Note = o.ID, o.Outcome, o.Note
		case OpCheckFence:
			kept.Key, kept.Fence = o.Key, o.Fence
		case OpConvert:
			kept.ID, kept.Claims, kept.OnConflict, kept.MaxWait = o.ID, o.Claims, o.OnConflict, o.MaxWait
		case OpArrive:
			kept.ID, kept.MaxWait = o.ID, o.MaxWait
		case OpPark:
			kept.ID, kept.Free, kept.Keep, kept.TTL, kept.Note = o.ID, o.Free, o.Keep, o.TTL, o.Note
		case OpResume:
			kept.ID, kept.Flow, kept.OnConflict, kept.MaxWait, kept.Unapproved = o.ID, o.Flow, o.OnConflict, o.MaxWait,
				o.Unapproved
		case OpDeclare:
			kept.Flow, kept.Purpose, kept.On, kept.MaxWait = o.Flow, o.Purpose, o.On, o.MaxWait
		case OpSetPattern:
			kept.Pattern = o.Pattern
		case OpDropPattern, OpListPatterns:
			kept.Name = o.Name
		case OpConfigure:
			kept.Settings = o.Settings
		case OpCommit:
			kept.Commit = &interlock.CommitRequest{}
			random(r, reflect.ValueOf(kept.Commit).Elem())
		case OpReadState:
			kept.AsOf, kept.Prefix, kept.Bodies = o.AsOf, o.Prefix, o.Bodies
			kept.State = &StateQuery{}
			random(r, reflect.ValueOf(kept.State).Elem())
		case OpReadHistory:
			kept.Key, kept.Bodies = o.Key, o.Bodies
		case OpClaimEffect:
			kept.Flow, kept.ID, kept.TTL = o.Flow, o.ID, o.TTL
			e := randomEffectOp(r)
			kept.Effect = &EffectOp{Tool: e.Tool, Target: e.Target, Arguments: e.Arguments, Claim: e.Claim}
		case OpSettleEffect:
			e := randomEffectOp(r)
			kept.ID = o.ID
			kept.Effect = &EffectOp{Digest: e.Digest, State: e.State, Result: e.Result, Reason: e.Reason}
		case OpGetEffect:
			kept.Effect = &EffectOp{Digest: randomEffectOp(r).Digest}
		case OpListEffects:
			e := randomEffectOp(r)
			kept.Effect = &EffectOp{State: e.State, Digest: e.Digest, Limit: e.Limit}
		case OpGetTask:
			kept.ID = o.ID
		case OpSetQueue:
			kept.Queue = o.Queue
		case OpDropQueue, OpListQueues:
			kept.Name = o.Name
		case OpStartRun:
			kept.Flow, kept.Purpose, kept.Priority, kept.RequestID = o.Flow, o.Purpose, o.Priority, o.RequestID
			kept.TTL, kept.MaxHold, kept.MaxWait = o.TTL, o.MaxHold, o.MaxWait
			kept.Run = &RunOp{}
			random(r, reflect.ValueOf(kept.Run).Elem())
		case OpRevertPattern:
			kept.Name, kept.Revision = o.Name, o.Revision
		case OpClose, OpGetSettings, OpGetContention:
		default:
			keepTask(r, &kept, &o)
		}
		f.Ops = append(f.Ops, kept)
	}
	return f
}

func randomEffectOp(r *rand.Rand) *EffectOp {
	e := &EffectOp{}
	random(r, reflect.ValueOf(e).Elem())
	return e
}

func randomServerFrame(r *rand.Rand) *ServerFrame {
	f := &ServerFrame{}
	random(r, reflect.ValueOf(f).Elem())
	unstale := func(l *interlock.Lease) { // sent in Reply.Packet and Reply.Documents
		l.Stale, l.StaleMore = nil, false
		l.Documents, l.DocumentsMore, l.AsOf = nil, false, 0
	}
	for i := range f.Replies {
		reply := &f.Replies[i]
		unstale(&reply.Lease)
		for j := range reply.Documents {
			if d := &reply.Documents[j]; d.Body == nil && r.IntN(2) == 0 {
				d.Body = []byte{} // an empty body is another thing than none
			}
		}
		for j := range reply.Losses {
			unstale(&reply.Losses[j].Lease)
		}
		for j := range reply.Handed {
			unstale(&reply.Handed[j].Lease)
		}
		if r.IntN(2) == 0 {
			reply.Lease = interlock.Lease{} // without an id it is not sent
		}
	}
	return f
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	f := &ClientFrame{Ops: []Op{{Kind: OpHeartbeat, Slot: 1, Seq: 2}}}
	b := append([]byte{99<<3&0x7f | 0x80 | wireVarint, 6, 5}, f.AppendTo(nil)...)
	b = append(b, 9<<3|wireFixed64, 1, 2, 3, 4, 5, 6, 7, 8, 9<<3|wireFixed32, 1, 2, 3, 4, 10<<3|wireBytes, 2, 'h', 'i')
	again := &ClientFrame{}
	if err := again.Decode(b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f, again) {
		t.Fatalf("got %+v", again)
	}
	// An operation that this version does not know arrives without a kind.
	if err := again.Decode([]byte{
		1<<3 | wireBytes, 5, 2<<3 | wireVarint, 7, 99<<3&0x7f | 0x80 | wireBytes, 6, 0,
	}); err != nil {
		t.Fatal(err)
	}
	if len(again.Ops) != 1 || again.Ops[0].Kind != 0 || again.Ops[0].Seq != 7 {
		t.Fatalf("got %+v", again)
	}
}

func TestFramesRefuse(t *testing.T) {
	many := &ClientFrame{}
	for range MaxFrameOps + 1 {
		many.Ops = append(many.Ops, Op{Kind: OpClose})
	}
	for name, b := range map[string][]byte{
		"cut short":           {1<<3 | wireBytes, 5, 1},
		"no length":           {1<<3 | wireBytes},
		"endless number":      bytes.Repeat([]byte{0xff}, 20),
		"a number of 65 bits": append(append([]byte{9<<3 | wireVarint}, bytes.Repeat([]byte{0xff}, 9)...), 2),
		"groups":              {1<<3 | 3},
		"two bodies":          {1<<3 | wireBytes, 4, 6<<3 | wireBytes, 0, 7<<3 | wireBytes, 0},
		"short id":            {1<<3 | wireBytes, 5, 9<<3 | wireBytes, 3, 1<<3 | wireBytes, 1, 7},
		"long id": append(
			[]byte{1<<3 | wireBytes, 21, 9<<3 | wireBytes, 19, 1<<3 | wireBytes, 17}, make([]byte, 17)...,
		),
		"text is not UTF-8":    {1<<3 | wireBytes, 5, 6<<3 | wireBytes, 3, 1<<3 | wireBytes, 1, 0xff},
		"too many operations":  many.AppendTo(nil),
		"short fixed64":        {9<<3 | wireFixed64, 1},
		"short fixed32":        {9<<3 | wireFixed32, 1},
		"length beyond memory": {1<<3 | wireBytes, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		var f ClientFrame
		if err := f.Decode(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, f)
		}
	}
}

// Lists that are longer than allowed are not kept in memory; one element too many
// is enough for the engine to refuse them.
func TestListsAreBounded(t *testing.T) {
	const many = 10 * MaxListed
	f := &ClientFrame{Ops: []Op{
		{Kind: OpAcquire, LeaseRequest: interlock.LeaseRequest{Claims: make([]interlock.Claim, many)}},
		{Kind: OpConvert, LeaseRequest: interlock.LeaseRequest{Claims: make([]interlock.Claim, many)}},
		{Kind: OpSetPattern, Pattern: &interlock.Pattern{
			Aliases: make([]string, many), Members: make([]string, many), Groups: make([]interlock.Group, many),
			Allow: make([]interlock.Rule, many),
		}},
		{Kind: OpSetPattern, Pattern: &interlock.Pattern{Allow: []interlock.Rule{{Modes: make([]interlock.Mode, many)}}}},
		{Kind: OpCommit, Commit: &interlock.CommitRequest{
			Reads: make([]interlock.Read, many), Writes: make([]interlock.Write, many), Leases: make([]interlock.LeaseID, many),
		}},
		{Kind: OpReadState, State: &StateQuery{Keys: make([]interlock.Key, many)}},
		{
			Kind: OpSubmitTask,
			Task: &TaskOp{
				Specs: []interlock.TaskSpec{{
					Claims: make([]interlock.Claim, many), Ask: &interlock.Question{Reads: make([]interlock.Read, many)},
				}},
			},
		},
		{
			Kind:   OpAckTask,
			Commit: &interlock.CommitRequest{Reads: make([]interlock.Read, many), Writes: make([]interlock.Write, many)},
			Task:   &TaskOp{Specs: make([]interlock.TaskSpec, many)},
		},
		{Kind: OpSetQueue, Queue: &interlock.TaskQueue{Groups: make([]interlock.Share, many)}},
	}}
	var again ClientFrame
	if err := again.Decode(f.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	p, c := again.Ops[2].Pattern, again.Ops[4].Commit
	for what, n := range map[string]int{
		"claims": len(again.Ops[0].Claims), "claims of a conversion": len(again.Ops[1].Claims),
		"aliases": len(p.Aliases), "members": len(p.Members), "groups": len(p.Groups), "rules": len(p.Allow),
		"modes": len(again.Ops[3].Pattern.Allow[0].Modes),
		"reads": len(c.Reads), "writes": len(c.Writes), "leases of a commit": len(c.Leases),
		"keys":                        len(again.Ops[5].State.Keys),
		"claims of a task":            len(again.Ops[6].Task.Specs[0].Claims),
		"reads of a question":         len(again.Ops[6].Task.Specs[0].Ask.Reads),
		"reads of an acknowledgement": len(again.Ops[7].Commit.Reads), "its writes": len(again.Ops[7].Commit.Writes),
		"its tasks":         len(again.Ops[7].Task.Specs),
		"groups of a queue": len(again.Ops[8].Queue.Groups),
	} {
		if n != MaxListed+1 {
			t.Errorf("%d %s", n, what)
		}
	}
}

func FuzzClientFrame(f *testing.F) {
	for _, o := range []Op{
		{Kind: OpOpen, RequestID: "r", Agent: "a", LeaseRequest: interlock.LeaseRequest{Terms: interlock.Terms{TTL: 1}}},
		{Kind: OpPoll, Slot: 1, Seq: 300, Acked: 2, ID: [16]byte{1}},
		{Kind: OpAcquire, LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: "k", Mode: 3}, {Key: "é"}}, Flow: "f", Terms: interlock.Terms{Grace: -1},
			Priority: -7, OnConflict: 1,
		}},
		{Kind: OpRelease, ID: [16]byte{2}, Outcome: "done", Note: "n"},
		{Kind: OpCheckFence, Key: "k", Fence: 1 << 60},
		{Kind: OpClose},
		{Kind: OpAcquire, LeaseRequest: interlock.LeaseRequest{
			Any: true, Prefix: "gpu:", Terms: interlock.Terms{Group: "g", Stall: 1, LockDelay: 2, MaxWait: 3, Division: 1},
			Claims: []interlock.Claim{{Key: "k", Mode: interlock.Permits, Count: 7}},
		}},
		{Kind: OpConvert, ID: [16]byte{3}, LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: "k", Mode: interlock.Shared}}, Terms: interlock.Terms{MaxWait: 1}, OnConflict: 3,
		}},
		{Kind: OpArrive, ID: [16]byte{4}, LeaseRequest: interlock.LeaseRequest{Terms: interlock.Terms{MaxWait: 1}}},
		{Kind: OpPark, ID: [16]byte{5}, Free: true, LeaseRequest: interlock.LeaseRequest{
			Terms: interlock.Terms{TTL: 1},
		}, Note: "why"},
		{Kind: OpResume, ID: [16]byte{6}, LeaseRequest: interlock.LeaseRequest{Flow: "f", OnConflict: 1}, Unapproved: true},
		{
			Kind: OpDeclare, LeaseRequest: interlock.LeaseRequest{Flow: "f"},
			On: &WaitTarget{Session: "brave-otter", Agent: "a"},
		},
		{Kind: OpSetPattern, Pattern: &interlock.Pattern{
			Name: "n", Shape: "a:{id}", Aliases: []string{""}, Groups: []interlock.Group{{Name: "g", Min: 1}},
			Allow: []interlock.Rule{{Principal: "*", Modes: []interlock.Mode{interlock.Shared}}}, MaxWaiters: -1,
		}},
		{Kind: OpListPatterns, Name: "n"},
		{Kind: OpSubmitTask, LeaseRequest: interlock.LeaseRequest{
			Flow: "f",
		}, RequestID: "r", Agent: "a", Task: &TaskOp{Attach: true, Specs: []interlock.TaskSpec{{
			Queue: "q", Kind: "k", Claims: []interlock.Claim{{Key: "k"}}, Payload: []byte("{}"), Priority: -3, Delay: 1,
			MaxAttempts: 2,
			Message:     true, Key: "k",
			Ask: &interlock.Question{
				Text: "may I?", Limit: 1, OnLimit: interlock.Approved, Reads: []interlock.Read{{Key: "k", Version: 3}},
			},
		}}}},
		{Kind: OpPullTasks, ID: [16]byte{7}, LeaseRequest: interlock.LeaseRequest{
			Terms: interlock.Terms{TTL: 1},
		}, Task: &TaskOp{Queue: "q", Limit: 8}},
		{
			Kind: OpAckTask, ID: [16]byte{8}, Task: &TaskOp{Result: []byte("1"), Specs: []interlock.TaskSpec{{}, {Queue: "q"}}},
			Commit: &interlock.CommitRequest{AsOf: 1, Note: "n", Reads: []interlock.Read{{Key: "k"}}},
		},
		{Kind: OpNackTask, ID: [16]byte{8}, Task: &TaskOp{Reason: "r", Delay: -1, Dead: true}},
		{Kind: OpAnswerTask, Fence: 7, Task: &TaskOp{Verdict: interlock.Approved, By: "b"}},
		{Kind: OpAnswerTask, ID: [16]byte{9}, Task: &TaskOp{Verdict: interlock.Denied, By: "b", Reason: "r"}},
		{Kind: OpListTasks, LeaseRequest: interlock.LeaseRequest{
			Terms: interlock.Terms{Group: "g"},
		}, Key: "k", Task: &TaskOp{Queue: "q", State: interlock.TaskDead, Limit: 3}},
		{
			Kind:  OpSetQueue,
			Queue: &interlock.TaskQueue{Name: "q", Paused: true, Groups: []interlock.Share{{Group: "g", Weight: 2}}},
		},
		{Kind: OpStartRun, LeaseRequest: interlock.LeaseRequest{
			Flow: "f", Terms: interlock.Terms{MaxWait: 1},
		}, Run: &RunOp{Org: "o", Workflow: "w"}},
		{Kind: OpRevertPattern, Name: "n", Revision: 4},
		{Kind: OpConfigure, Settings: &interlock.Settings{StrictOrder: true, Quota: interlock.Quota{Keys: 5}}},
		{Kind: OpGetSettings},
		{Kind: OpCommit, Commit: &interlock.CommitRequest{
			AsOf: 3, Note: "n",
			Reads: []interlock.Read{{Key: "k", Version: 2}, {Key: "l", Absent: true}, {Key: "m", Present: true}},
			Writes: []interlock.Write{
				{Key: "k", Op: interlock.Put, ContentType: "text/plain", Body: []byte("b")},
				{Key: "c", Op: interlock.Add, Delta: -1, Min: new(int64(0)), Max: new(int64(9))},
			},
			Leases: []interlock.LeaseID{{1}},
		}},
		{Kind: OpReadState, LeaseRequest: interlock.LeaseRequest{
			AsOf: 2,
		}, Bodies: true, State: &StateQuery{Keys: []interlock.Key{"k"}}},
		{Kind: OpReadState, LeaseRequest: interlock.LeaseRequest{Prefix: "p"}, State: &StateQuery{After: "a", Limit: 5}},
		{Kind: OpReadHistory, Key: "k", Bodies: true},
		{Kind: OpClaimEffect, LeaseRequest: interlock.LeaseRequest{
			Terms: interlock.Terms{TTL: 1},
		}, Effect: &EffectOp{Tool: "t", Target: "x", Arguments: []byte("{}")}},
		{Kind: OpSettleEffect, ID: [16]byte{7}, Effect: &EffectOp{State: interlock.EffectDone, Result: []byte("1")}},
		{Kind: OpListEffects, Effect: &EffectOp{Digest: [32]byte{1}, State: interlock.EffectUnknown}},
		{Kind: OpGetContention},
	} {
		f.Add((&ClientFrame{Ops: []Op{o, {Kind: OpHeartbeat, Progress: "p"}}}).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame, again ClientFrame
		if frame.Decode(b) != nil {
			return
		}
		for _, o := range frame.Ops {
			if o.Kind == 0 {
				return
			}
		}
		if err := again.Decode(frame.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(frame, again) && len(frame.Ops) > 0 {
			t.Fatalf("decoded  %+v\nrepeated %+v", frame, again)
		}
	})
}

func FuzzServerFrame(f *testing.F) {
	f.Add((&ServerFrame{Epoch: 3, GoAway: &GoAway{RetryAfter: 1, Message: "m"}, Replies: []Reply{
		{
			Outcome: Granted, Seq: 1,
			Lease: interlock.Lease{ID: [16]byte{1}, Claims: []interlock.Claim{{Key: "k"}}, Notes: []interlock.Note{{Text: "t"}}},
		},
		{
			Outcome: Queued, Ticket: &interlock.Ticket{ID: [16]byte{1}, Position: 1},
			Conflict: &interlock.Conflict{
				Holders: []interlock.Holder{{
					Agent: "a", EndedBy: "preempted", Yield: &interlock.Yield{Agent: "b", Revoked: true},
					Parking: &interlock.ParkStatus{Reason: "r"},
				}},
				Capacity: &interlock.Capacity{Groups: []interlock.GroupUse{{Used: 1}}},
				Cycle:    []interlock.CycleStep{{Victim: true, Next: interlock.Ahead}},
			},
		},
		{
			Outcome: Asked,
			Lease: interlock.Lease{
				ID: [16]byte{1}, Yield: &interlock.Yield{Priority: -3}, Parts: []interlock.Part{{Key: "k/1", Stop: true}},
			},
		},
		{Outcome: Done, Patterns: []interlock.Pattern{{Name: "n"}}, More: true, Settings: &interlock.Settings{}},
		{Outcome: Refused, Code: "stale", Version: 4, Documents: []interlock.Document{{
			Key: "k", Body: []byte{}, Op: interlock.Put,
		}}, Packet: &interlock.Packet{
			Changes: []interlock.Change{{
				Known: true, Writes: 3, Between: []interlock.Document{{Version: 2, Note: "n"}}, Left: 1,
				Diff: interlock.Difference{Kind: interlock.UnifiedDiff, Text: "@@", Cut: true},
			}},
			Message: "m",
		}},
		{
			Outcome: Done, Effects: []interlock.Effect{{ID: [16]byte{1}, Result: "1"}},
			Contention: []interlock.Contention{{Write: interlock.WriteLease, Advice: &interlock.Advice{}}},
		},
		{Outcome: Granted, Ticket: &interlock.Ticket{ID: [16]byte{1}}, Handed: []interlock.Assignment{{
			Task: interlock.Task{
				ID: [16]byte{2}, Priority: -1, Attempts: []interlock.Attempt{{Number: 1}},
				Approval: &interlock.Approval{Stale: []interlock.Stale{{Writes: 2, Between: []interlock.Document{{Key: "k"}}}}},
			},
			Lease: interlock.Lease{ID: [16]byte{3}}, Documents: []interlock.Document{{Key: "k"}}, AsOf: 2,
		}}},
		{
			Outcome: Done, Tasks: []interlock.Task{{Queue: "q"}}, Queues: []interlock.QueueStatus{{Idle: 1}},
			Log: []interlock.LogEntry{{Seq: 1, Body: []byte("1")}}, More: true, Next: 1 << 40,
		},
		{
			Outcome: Done, Session: &Session{Name: "n"}, Losses: []Loss{{Code: "expired"}},
			Advice: &interlock.Advice{Action: "wait"},
		},
	}}).AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame ServerFrame
		_ = frame.Decode(b) // must neither panic nor hang
	})
}

func BenchmarkAcquireFrame(b *testing.B) {
	f := &ClientFrame{}
	for i := range 256 {
		f.Ops = append(f.Ops, Op{
			Kind: OpAcquire, Slot: 1, Seq: uint64(i + 1000), LeaseRequest: interlock.LeaseRequest{
				Flow:   "agent-17",
				Claims: []interlock.Claim{{Key: "account:123456", Mode: interlock.Exclusive}},
			},
		})
	}
	var buf []byte
	var got ClientFrame
	b.ReportAllocs()
	for b.Loop() {
		buf = f.AppendTo(buf[:0])
		if err := got.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/operation")
}

func BenchmarkGrantFrame(b *testing.B) {
	f := &ServerFrame{Epoch: 1}
	for i := range 256 {
		f.Replies = append(f.Replies, Reply{
			Slot: 1, Seq: uint64(i + 1000), Outcome: Granted, Index: 1_000_000,
			Lease: interlock.Lease{
				ID: [16]byte{1}, Fence: 1_000_000, Claims: []interlock.Claim{{Key: "account:123456", Mode: interlock.Exclusive}},
				Agent: "billing", Session: "brave-otter", Flow: "agent-17", TTL: 30 * time.Second, Grace: 5 * time.Second,
				ExpiresIn: 30 * time.Second, State: interlock.Held,
			},
		})
	}
	var buf []byte
	var got ServerFrame
	b.ReportAllocs()
	for b.Loop() {
		buf = f.AppendTo(buf[:0])
		if err := got.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/operation")
}
