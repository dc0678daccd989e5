package server

import (
	"maps"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// tourRefusals has a shard refuse each operation with each status that it documents.
func tourRefusals(d *door, healthy Shard) {
	refusals := map[int]interlock.Code{
		404: interlock.CodeUnknownLease, 409: interlock.CodeParked, 410: interlock.CodeSessionEnded,
		422: interlock.CodeRequestIDReused,
		412: interlock.CodeStale, 428: interlock.CodeVersionRequired,
	}
	for _, c := range samples() {
		r := d.request(c.method, c.path, "")
		op, _, err := operationOf(r)
		if err != nil {
			d.Fatal(err)
		}
		for status, code := range refusals {
			reads := c.method == "GET" && !strings.HasPrefix(c.path, "/v1/leases/") || op.OperationID == "testWebhook" ||
				op.OperationID == "deleteMove"
			if reads || op.Responses.Status(status) == nil {
				continue
			}
			d.server.shard = faulty{
				healthy, nil, &engine.Effect{Outcome: engine.Refused, Code: code, Message: message.Plain("as it is")},
			}
			d.sample(c, c.path, c.body).want(status, string(code))
		}
	}
	d.server.shard = healthy
}

// fullLease has everything that a lease can have.
func fullLease() interlock.Lease {
	return interlock.Lease{
		ID: interlock.LeaseID{1}, Fence: 7, Agent: "billing-7", Session: "quiet-otter", Flow: "main", Purpose: "late fee",
		Claims: []interlock.Claim{
			{Key: "account:1", Mode: interlock.Exclusive},
			{Key: "gpu:pool", Mode: interlock.Permits, Count: 2},
			{Key: "gate", Mode: interlock.Barrier, Count: 3},
			{Key: "queue:orders", Mode: interlock.Member, Count: 16},
		},
		TTL: 30 * time.Second, Grace: 5 * time.Second, ExpiresIn: 3 * time.Second, MaxHoldIn: time.Minute,
		StallIn:   10 * time.Second,
		LockDelay: time.Second, Group: "batch", State: interlock.Grace, EndedBy: "preempted", Changed: true,
		Moved: []interlock.Key{"account:1"},
		Yield: &interlock.Yield{
			Agent: "support-2", Session: "loud-owl", Flow: "main", Purpose: "fix the outage", Priority: 10,
			Since: 2 * time.Second, Revoked: true,
		},
		Parking:    &interlock.ParkStatus{Reason: "may I pay 900?", Since: time.Minute, Left: time.Hour, Freed: true},
		Decision:   &interlock.Decision{Verdict: interlock.Approved, By: "ann", Principal: "cfo", Reason: "within policy"},
		Generation: 4,
		Parts: []interlock.Part{{
			Key: "queue:orders/3", Lease: interlock.LeaseID{2}, Fence: 9, Stop: true, Left: 4 * time.Second,
		}},
	}
}

// fullConflict has everything that a conflict can have.
func fullConflict() *engine.Conflict {
	return &engine.Conflict{Conflict: interlock.Conflict{
		Key: "gpu:pool", Kind: interlock.CapacityUsed,
		Holders: []interlock.Holder{
			{
				Agent: "a", Key: "gpu:pool", Mode: interlock.Permits, Count: 2, Fence: 1, Liveness: interlock.LiveGrace,
				Held: time.Second, ExpiresIn: time.Second, EndedBy: "preempted", Yield: fullLease().Yield,
			},
			{
				Agent: "b", Key: "gate", Mode: interlock.Barrier, Count: 3, Fence: 2, Liveness: interlock.LiveParked,
				Parking: &interlock.ParkStatus{Reason: "may I?", Left: time.Hour},
			},
			{Agent: "c", Key: "queue:orders", Mode: interlock.Member, Count: 16, Fence: 3, Liveness: interlock.Closed},
		},
		More: 1, Line: interlock.Line{Length: 2, ETA: 40 * time.Second},
		Cycle: []interlock.CycleStep{
			{Agent: "a", Session: "s", Flow: "main", Victim: true},
			{Agent: "b", Flow: "main", Key: "k", Mode: interlock.Exclusive},
		},
		Capacity: &interlock.Capacity{
			Permits: 2, Used: 2, Tokens: 10, Available: 3, Refill: 1500 * time.Millisecond,
			Groups: []interlock.GroupUse{{Group: interlock.Group{Name: "batch", Min: 1, Max: 2}, Used: 2}},
		},
		Nearest: []string{"gpu:{name}", "gpu:pool"},
	}}
}

// tourEffects has a shard give each answer that it may give, with all that it may
// have, and looks for it on the wire.
func tourEffects(d *door, healthy Shard) {
	lease, ticket := fullLease(), interlock.Ticket{
		ID: interlock.TicketID{1}, Position: 2, Length: 2, ETA: 40 * time.Second,
	}
	lease.Stale, lease.StaleMore = fullStale(), true
	lease.Documents, lease.DocumentsMore, lease.AsOf = fullDocuments(), true, 57
	lease.Documents[0].Earlier = fullDocuments()[:interlock.MaxEarlier]
	lease.Documents[1].Body = nil
	parked := lease
	parked.State, parked.Decision, parked.Parking = interlock.Parked, nil, &interlock.ParkStatus{
		Reason: "may I?", Left: time.Hour,
	}
	warnings := []*message.Text{message.Plain("key account:1 is spelled almost like the live key acct:1")}
	effects := map[string]engine.Effect{
		"granted": {Outcome: engine.Granted, Lease: lease, Warnings: warnings},
		"queued":  {Outcome: engine.Queued, Ticket: ticket, Conflict: fullConflict(), Warnings: warnings},
		"skipped": {Outcome: engine.Skipped, Conflict: fullConflict(), Warnings: warnings},
		"parked":  {Outcome: engine.Done, Lease: parked},
		"beat": {
			Outcome: engine.Done,
			Losses: []engine.Loss{
				{Lease: parked}, {Lease: lease, Code: interlock.CodePreempted, Message: message.Plain("asked for")},
			},
		},
		"refused": {
			Outcome: engine.Refused, Code: interlock.CodeAtCapacity,
			Message: message.Plain("all permits of gpu:pool are taken"), Conflict: fullConflict(),
		},
		"gone": {Outcome: engine.Refused, Code: interlock.CodePreempted, Message: message.Plain("gone"), Lease: lease},
		"limit": {
			Outcome: engine.Refused, Code: interlock.CodeWaitLimit, Message: message.Plain("gone"),
			Lease: interlock.Lease{EndedBy: "wait_limit"},
		},
		"done": {Outcome: engine.Done},
		"stale": {
			Outcome: engine.Refused, Code: interlock.CodeStale, Message: message.Plain("stale"), Stale: fullStale(),
			StaleMore: true,
		},
		"written": {
			Outcome: engine.Done, Version: 57, Documents: fullDocuments(), Warnings: warnings,
			Contention: &interlock.Contention{Commits: 15, Conflicts: 15},
		},
		"claimed": {Outcome: engine.Done, Effect: fullEffect()},
		"unknown": {
			Outcome: engine.Refused, Code: interlock.CodeEffectUnknown, Message: message.Plain("it may have been done"),
			Effect: fullEffect(),
		},
	}
	maps.Copy(effects, taskEffects())
	send := func(method, path, effect string, status int) *reply {
		d.Helper()
		eff := effects[effect]
		d.server.shard = faulty{healthy, nil, &eff}
		defer func() { d.server.shard = healthy }()
		for _, c := range samples() {
			if p, _ := matchPath(c.method, strings.Split(c.path, "?")[0]); c.method == method && p == path {
				return d.sample(c, c.path, c.body).want(status)
			}
		}
		d.Fatalf("no sample of %s %s", method, path)
		return nil
	}
	for _, path := range []string{
		"/v1/leases", "/v1/leases/{id}/convert", "/v1/leases/{id}/arrive", "/v1/leases/{id}/resume",
	} {
		granted := send("POST", path, "granted", 200)
		granted.is("lease.claims.1.mode", "permits").is("lease.group", "batch").is("lease.ended_by", "preempted").is(
			"lease.moved.0", "account:1",
		)
		granted.is("lease.yield.agent", "support-2").is("lease.yield.purpose", "fix the outage").is(
			"lease.parking.keys", "freed",
		)
		granted.is("lease.parts.0.key", "queue:orders/3").is("lease.parts.0.lease", interlock.LeaseID{2}.String()).is(
			"lease.parts.0.fence", "9",
		)
		granted.is("warnings.0", prose.Sentence(warnings[0])).is("advice.action", "stop")
		for name, want := range map[string]int64{
			"lease.claims.1.permits": 2, "lease.claims.2.parties": 3, "lease.claims.3.parts": 16, "lease.stall_in_ms": 10_000,
			"lease.lock_delay_ms": 1000,
			"lease.generation":    4, "lease.yield.since_ms": 2000, "lease.parking.left_ms": 3_600_000,
			"lease.parts.0.left_ms": 4000,
		} {
			if got := granted.num(name); got != want {
				d.Errorf("%s: %s is %d, want %d", path, name, got, want)
			}
		}
		queued := send("POST", path, "queued", 202).is("ticket.id", ticket.ID.String()).is(
			"warnings.0", prose.Sentence(warnings[0]),
		)
		queued.is("holders.0.ended_by", "preempted").is("holders.0.yield.agent", "support-2").is(
			"capacity.groups.0.name", "batch",
		)
		queued.is("conflict_kind", "capacity").is("holders.0.mode", "permits").is("holders.1.liveness", "parked").is(
			"holders.1.parking.reason", "may I?",
		).is("holders.2.liveness", "closed")
		if queued.num("holders.0.permits") != 2 || queued.num("holders.1.parties") != 3 ||
			queued.num("holders.2.parts") != 16 || queued.num("capacity.refill_ms") != 1500 {
			d.Error(queued.raw)
		}
		refused := send("POST", path, "refused", 429).is("code", "at_capacity").is("nearest.1", "gpu:pool").is(
			"conflict_kind", "capacity",
		)
		if refused.num("capacity.used") != 2 || refused.num("capacity.available") != 3 ||
			refused.num("line.eta_ms") != 40_000 {
			d.Error(refused.raw)
		}
		if after := refused.header.Get("Retry-After"); after != "40" {
			d.Errorf("Retry-After is %q", after)
		}
		gone := send("POST", path, "gone", 410).is("code", "preempted").is("ended_by", "preempted")
		gone.says("advice.message", "write nothing more under it")
		if after := send("POST", path, "limit", 410).header.Get("Retry-After"); after != "30" {
			d.Errorf("Retry-After is %q", after)
		}
	}
	tourWrites(d, send)
	tourTaskAnswers(d, send)
	asked := engine.Effect{Outcome: engine.Done, Question: &engine.LeaseQuestion{
		Fence: 7, Question: "may I?", Agent: "billing-7", Principal: "ops", Claims: lease.Claims[:1],
		Parking: *parked.Parking,
	}}
	d.server.shard = faulty{healthy, nil, &asked}
	d.post("/v1/approvals/7", `{"verdict":"approved","by":"ann"}`).want(200).is("lease.principal", "ops")
	d.server.shard = healthy
	tourRunAnswers(send)
	send("POST", "/v1/leases", "skipped", 200)
	send("POST", "/v1/waits", "queued", 202)
	send("POST", "/v1/leases/{id}/park", "parked", 200).is("outcome", "parked").is("lease.parking.keys", "kept").is(
		"advice.action", "ask_human",
	)
	send("POST", "/v1/leases/{id}/renew", "granted", 200).is("lease.yield.agent", "support-2")
	beat := send("POST", "/v1/sessions/{id}/heartbeat", "beat", 200)
	beat.is("warnings.0.lease.state", "parked").is("losses.0.code", "preempted").is(
		"losses.0.lease.yield.agent", "support-2",
	)
	d.server.shard = faulty{healthy, nil, &engine.Effect{Outcome: engine.Done, WantsList: true}}
	d.post("/v1/sessions/s_00000000000000000000000000000001/heartbeat", `{"known":{}}`).want(200)
	d.server.shard = healthy
	send("PUT", "/v1/patterns/{name}", "done", 200).is("outcome", "set")
	send("DELETE", "/v1/patterns/{name}", "done", 200).is("outcome", "deleted")
	send("PUT", "/v1/namespace", "done", 200).is("outcome", "set")
}

func tourBarrier(d *door) {
	for _, agent := range []string{"ann", "ben"} {
		ticket := d.post("/v1/leases", `{"agent":"`+agent+`","on_conflict":"wait","claims":[{"key":"gate","parties":2}]}`)
		if agent == "ann" {
			d.get("/v1/keys/gate").want(200).num("waiters.0.parties")
			continue
		}
		d.get("/v1/keys/gate").want(200).num("generation")
		d.post("/v1/leases/"+ticket.want(200).str("lease.id")+"/release", "").want(200)
		if got := d.get("/v1/keys/gate").want(200); got.at("broken") != true {
			d.Error(got.raw)
		}
	}
}

func tourParked(d *door) {
	for _, key := range []string{"parked:1", "parked:2"} {
		d.post("/v1/leases/"+d.acquire("refunds", key)+"/park", `{"keys":"free","reason":"pay?"}`).want(200)
	}
	page := d.get("/v1/parked?limit=1").want(200).is("leases.0.claims.0.key", "parked:1").is(
		"leases.0.parking.keys", "freed",
	)
	next := d.get("/v1/parked?limit=1&cursor="+page.str("cursor")).want(200).is("leases.0.claims.0.key", "parked:2")
	if next.at("cursor") != nil || next.at("leases.0.id") != nil {
		d.Errorf("the last page has a cursor, or an id: %s", next.raw)
	}
	d.get("/v1/keys?cursor="+page.str("cursor")).want(404, "not_found")
	d.get("/v1/parked?cursor="+d.get("/v1/keys?limit=1").str("cursor")).want(404, "not_found")
}

func tourListings(d *door) {
	d.reopen(func(c *Config) {
		c.JournalKind = "memory"
		c.Disk = func() (used, free int64, ok bool) { return 1 << 20, 1 << 20, true }
	})
	d.get("/v1/status").want(200).says("warnings.0", "low_space").has("server.journal.free_bytes", 1<<20).is(
		"server.journal.kind", "memory",
	)
	d.put("/v1/queues/listed", `{}`).want(200)
	for range 2 {
		d.post("/v1/tasks", `{"queue":"listed","claims":[{"key":"listed:1"}]}`).want(202)
	}
	d.post("/v1/queues/listed/pull", `{}`).want(200)
	holder := d.session("holder")
	for _, key := range []string{"listed:2", "listed:3"} {
		d.post("/v1/leases", `{"session":"`+holder+`","claims":[{"key":"`+key+`"}]}`).want(200)
	}
	d.post("/v1/leases", `{"on_conflict":"wait","any":true,"claims":[{"key":"listed:2"},{"key":"listed:3"}]}`).want(202)
	d.post("/v1/waits", `{"on":{"agent":"holder"},"wait_ms":0}`).want(202)
	waiter := d.session("waiter")
	d.post("/v1/leases", `{"session":"`+waiter+`","on_conflict":"wait","claims":[{"key":"listed:2"}]}`).want(202)
	d.acquire("late", "late:1")
	for _, path := range []string{"/v1/leases", "/v1/tickets", "/v1/sessions"} {
		d.get(path+"?agent=holder&cursor="+d.get(path+"?limit=1").want(200).str("cursor")).want(404, "not_found")
	}
	d.get("/v1/leases?prefix=parked").want(200).is("leases.0.parking.keys", "freed")
	d.get("/v1/leases?prefix=listed:1").want(200).says("leases.0.task", "q_")
	d.get("/v1/tickets").want(200)
	d.get("/v1/sessions").want(200)
	pass(interlock.DefaultTTL + 1)
	d.get("/v1/leases?prefix=late:1").want(200).is("leases.0.ended_by", "ttl")
}

func tourParts(d *door) {
	lease := d.acquire("migration", "jobs")
	d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"jobs","parts":2}]}`).want(202)
	d.get("/v1/keys/jobs").want(200).num("waiters.0.parts")
	d.post("/v1/leases", `{"agent":"m1","claims":[{"key":"shared","parts":2}]}`).want(200)
	d.get("/v1/keys/shared?resource=order:1").want(200).is("part.resource", "order:1").is("part.holder.agent", "m1").num(
		"part.parts",
	)
	d.post("/v1/leases/"+lease+"/release", "").want(200)
}

// tourEventFields writes an event that has everything.
func tourEventFields(d *door) {
	full := record.Event{
		Kind: record.Queued, Namespace: "default", Session: 1, Agent: "a", Flow: "main", Claims: fullLease().Claims[3:],
		Actor: "ops", Asker: "a", Num: 2,
		Purpose: "why", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Terms: interlock.Terms{
			TTL: 1, Grace: 1, MaxHold: 1, Group: "batch", Stall: 1, LockDelay: 1, MaxWait: 1, Division: interlock.ByLoad,
		},
		Priority: 1, Fence: 3, Offer: true,
		Reason: record.ByStall, Outcome: "done", Note: "n", Waited: 1, Held: 1, Cycle: fullConflict().Cycle, Any: true,
		Lead: true, Base: 4, Part: true, Target: 5, TargetFlow: "main", By: 6, Generation: 7,
		Freed: true, Queued: true, Version: 10, AsOf: 11, ContentType: "text/plain", Op: uint8(interlock.Merge),
	}
	effect := record.Event{Kind: record.EffectChanged, Blob: []byte("{}"), Generation: 2}
	written := full
	written.Kind = record.Written
	refused := record.Event{Kind: record.Refused, Outcome: "acquire", Code: interlock.CodeHeld, Num: 3}
	decided := record.Event{Kind: record.ApprovalDecided, Op: uint8(interlock.TaskWaiting)}
	decided.SetVerdict("ops", nil, "refund 1200?", nil)
	moved := record.Event{
		Kind: record.NamespaceMoved, Actor: "ops", Generation: 3, OtherShard: 7, Op: uint8(record.MoveOpened),
	}
	for _, ev := range []*record.Event{&full, &written, &effect, &refused, &decided, &moved} {
		tourShown(d, "Event", func(j *jsonOut) { writeEvent(j, ev, 8, 9) })
	}
}

// fullPattern is a body with every field of a pattern, which do not contradict each
// other.
const fullPattern = `"pattern":"gpu:{n:int}","aliases":["gpu-{n:int}"],"members":["gpu:{0..7}"],"capacity":4,"rate":60,"per_ms":60000,"burst":10,` +
	`"groups":[{"name":"batch","min":1,"max":2}],"ttl_ms":20000,"max_ttl_ms":40000,"grace_ms":1000,"max_grace_ms":2000,"max_hold_ms":600000,` +
	`"stall_ms":60000,"lock_delay_ms":3000,"max_wait_ms":120000,"max_waiters":100,"allow":[{"principal":"*","modes":["shared","permits"]}],` +
	`"preempt":"revoke","park":"keep","max_park_ms":7200000,"on_deadlock":"revoke",` +
	`"write":"single-writer","writer":"ledger","audit_refusals":true`

const fullSettings = `"strict_order":true,"closed":true,"near_misses":true,"effect_retention_ms":3600000,` +
	`"quota":{"keys":1,"leases":2,"waiters":3,"sessions":4,"documents":7,"state_bytes":8,"requests_per_s":5,"bytes_per_s":6},` +
	`"principal_quota":{"leases":8,"waiters":9,"sessions":10,"requests_per_s":11,"bytes_per_s":12}`

// tourOperators sets what can be set, in a namespace of its own, and sees that what
// was sent comes back.
func tourOperators(d *door) {
	ns := []string{"Interlock-Namespace", "policy"}
	put := func(path, body string) *reply { return d.send(d.request("PUT", path, body, ns...)) }
	d.get("/v1/patterns", ns...).want(200)
	d.get("/v1/patterns/gpu", ns...).want(404, "unknown_pattern").says("detail", `"gpu"`)
	put("/v1/patterns/gpu", "{"+fullPattern+"}").want(200).is("outcome", "set")
	for _, path := range []string{"/v1/patterns/gpu", "/v1/patterns"} {
		if got := d.get(path, ns...).want(200).raw; !strings.Contains(got, `"name":"gpu",`+fullPattern) {
			d.Errorf("%s shows %s, want %s", path, got, fullPattern)
		}
	}
	d.get("/v1/keys/gpu-03", ns...).want(200).is("key", "gpu:3").is("pattern", "gpu").num("capacity.permits")
	d.post("/v1/leases", `{"claims":[{"key":"gpu:3","permits":3}]}`, ns...).want(200)
	d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"gpu:3","permits":2}]}`, ns...).want(202)
	d.get("/v1/keys/gpu:3", ns...).want(200).num("waiters.0.permits")
	put("/v1/namespace", "{"+fullSettings+"}").want(200).is("outcome", "set")
	if got := d.get("/v1/namespace", ns...).want(200).raw; !strings.Contains(got, fullSettings) {
		d.Errorf("the settings are %s, want %s", got, fullSettings)
	}
	d.send(d.request("DELETE", "/v1/patterns/gpu", "", ns...)).want(200).is("outcome", "deleted")
	d.send(d.request("DELETE", "/v1/patterns/gpu", "", ns...)).want(404, "unknown_pattern")
	if got := d.get("/v1/patterns", ns...).want(200).raw; !strings.Contains(got, `"patterns":[]`) {
		d.Error(got)
	}
	put("/v1/namespace", "").want(200)
	d.post("/v1/leases", `{"claims":[{"key":"k"}]}`, "Interlock-Namespace", "short").want(200)
	d.delete("/v1/namespaces/short").want(409, "namespace_in_use")
	d.delete("/v1/namespaces/short?force=maybe").want(400, "invalid_request")
	d.delete("/v1/namespaces/short?force=true").want(200).is("outcome", "deleted")
	events := d.get("/v1/events", ns...).want(200).raw
	for _, want := range []string{
		`"pattern_set"`, `"policy":{"name":"gpu",` + fullPattern, `"pattern_dropped"`, `"settings":{` + fullSettings,
	} {
		if !strings.Contains(events, want) {
			d.Errorf("the events lack %s: %s", want, events)
		}
	}
}
