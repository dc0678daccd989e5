package server

import (
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// fullDocuments are documents of each kind, with all that they can have.
func fullDocuments() []interlock.Document {
	d := interlock.Document{
		Key: "account:1", Version: 57, ContentType: interlock.JSONType, Body: []byte(`{"balance": 65}`), Size: 15,
		Op: interlock.Merge, Agent: "billing-7", Session: "quiet-otter", Flow: "main", Principal: "ops", Fence: 7,
		Note: "late fee", Age: time.Second,
	}
	text, bytes, gone := d, d, d
	text.Key, text.ContentType, text.Body, text.Size, text.Op = "page:home", plainText, []byte(
		"two\nlines\n",
	), 10, interlock.Put
	bytes.Key, bytes.ContentType, bytes.Body, bytes.Size, bytes.Op = "image:logo", anyBytes, []byte{0xff, 0}, 2,
		interlock.Put
	gone.Key, gone.ContentType, gone.Body, gone.Size, gone.Op, gone.Absent = "account:2", "", nil, 0, interlock.Delete,
		true
	return []interlock.Document{d, text, bytes, gone}
}

// fullStale are those documents changed in every way that can be reported.
func fullStale() []interlock.Stale {
	now := fullDocuments()
	list := make([]interlock.Stale, len(now))
	for i := range now {
		then := now[i]
		then.Version, then.Note = 41, ""
		list[i] = interlock.Stale{Then: then, Known: true, Now: now[i], Writes: i + 1}
	}
	list[0].Then.Body, list[0].Then.Size = []byte(`{"balance": 100}`), 16
	list[1].Then.Body, list[1].Then.Size = []byte("one\n"+strings.Repeat("more\n", 4000)), 20_004
	list[2].Then.Body, list[2].Then.Size = []byte{0xff}, 1
	list[3].Known, list[3].Then = false, interlock.Document{Key: "account:2", Version: 41}
	created := interlock.Stale{Then: interlock.Document{Key: "new", Absent: true}, Known: true, Now: now[0]}
	created.Now.Key = "new"
	return append(list, created)
}

// fullEffect has everything that an effect can have.
func fullEffect() *engine.SideEffect {
	return &engine.SideEffect{Reason: message.Plain("timeout"), Effect: interlock.Effect{
		Digest: [32]byte{1}, Action: `{"arguments":{},"target":"customer:1","tool":"charge"}`, ID: interlock.EffectID{1},
		State: interlock.EffectClaimed,
		Agent: "billing-7", Session: "quiet-otter", Flow: "main", Principal: "ops", Age: time.Second, ExpiresIn: time.Minute,
		Attempt: 2,
		Result:  `{"charge":"ch_1"}`, Settled: time.Second,
	}}
}

// tourWrites sees each answer about documents and effects with all that it may have.
func tourWrites(d *door, send func(method, path, effect string, status int) *reply) {
	for _, c := range [][2]string{
		{"POST", "/v1/commits"}, {"PUT", "/v1/state/{key}"}, {"PATCH", "/v1/state/{key}"}, {"DELETE", "/v1/state/{key}"},
	} {
		got := send(c[0], c[1], "written", 200).is("outcome", "committed").is("version", "57").is(
			"documents.0.key", "account:1",
		)
		got.is("documents.0.principal", "ops").is("documents.1.text", "two\nlines\n").is("documents.2.base64", "/wA=").says(
			"advice.message", "15 of 30",
		)
		if got.num("documents.0.value.balance") != 65 || got.at("documents.3.absent") != true ||
			got.at("documents.3.size") != nil {
			d.Error(got.raw)
		}
		stale := send(c[0], c[1], "stale", 412).is("code", "stale").is("advice.action", "re_read").says(
			"advice.message", "decide again",
		)
		stale.is("packet.stale.0.diff.kind", "json_patch").is("packet.stale.0.diff.patch.0.path", "/balance").is(
			"packet.stale.0.now.note", "late fee",
		)
		stale.is("packet.stale.1.diff.kind", "unified").is("packet.stale.2.diff.kind", "sizes").is(
			"packet.stale.3.diff.kind", "unknown",
		)
		if stale.at("packet.stale.1.diff.cut") != true || stale.at("packet.stale.4.then.absent") != true ||
			stale.at("packet.more") != true {
			d.Error(stale.raw)
		}
	}
	send("POST", "/v1/leases", "granted", 200).is("packet.stale.0.key", "account:1")
	send("POST", "/v1/effects", "claimed", 200).is("outcome", "claimed").is("effect.id", fullEffect().ID.String()).is(
		"effect.result.charge", "ch_1",
	)
	for _, path := range []string{"/v1/effects", "/v1/effects/{id}/done", "/v1/effects/{digest}/reconcile"} {
		send("POST", path, "unknown", 409).is("code", "effect_unknown").is("effect.reason", "timeout")
	}
	for _, path := range []string{
		"/v1/effects/{id}/done", "/v1/effects/{id}/unknown", "/v1/effects/{id}/cancel", "/v1/effects/{digest}/reconcile",
	} {
		send("POST", path, "claimed", 200)
	}
}

// tourState reads and writes documents in all ways.
func tourState(d *door) {
	d.post(
		"/v1/commits",
		`{"agent":"ann","note":"open","writes":[{"key":"doc:1","put":{"n":1}},{"key":"doc:2","text":"hi"},{"key":"doc:3","base64":"/w=="},{"key":"n","add":5}]}`,
	).
		want(200).is("version", "1")
	got := d.get("/v1/state?key=doc:1&key=doc:2&key=doc:3&key=none&values=true").want(200).is("as_of", "1").is(
		"documents.1.text", "hi",
	).is("documents.2.base64", "/w==")
	if got.num("documents.0.value.n") != 1 || got.at("documents.3.absent") != true {
		d.Error(got.raw)
	}
	raw := d.get("/v1/state/doc:1").want(200)
	if raw.raw != `{"n":1}` || raw.header.Get("ETag") != `"1"` || raw.header.Get("Content-Type") != interlock.JSONType {
		d.Error(raw.raw, raw.header)
	}
	d.get("/v1/state/doc:1", "If-None-Match", `"1"`).want(304)
	d.get("/v1/state/none").want(404, "unknown_document").is("version", "0").is("as_of", "1")
	d.get("/v1/state/doc:1?version=9").want(400, "future_version")
	page := d.get("/v1/state?prefix=doc:&limit=2").want(200).is("documents.1.key", "doc:2")
	d.get("/v1/state?prefix=doc:&limit=2&cursor="+page.str("cursor")).want(200).is("documents.0.key", "doc:3")
	d.get("/v1/state?cursor="+page.str("cursor")).want(404, "not_found")
	for range interlock.MaxVersions + 2 {
		d.post(
			"/v1/commits", `{"reads":[{"key":"doc:2","present":true}],"writes":[{"key":"doc:2","text":"again"}]}`,
		).want(200)
	}
	d.get("/v1/state/doc:2?version=1").want(410, "history_trimmed")
	if h := d.get("/v1/history/doc:2?values=true").want(200).is("versions.0.text", "again"); h.at("trimmed") != true {
		d.Error(h.raw)
	}
	d.get("/v1/contention").want(200)
	large, names := strings.Repeat("x", interlock.MaxDocumentBytes), "/v1/state?values=true"
	for _, key := range []string{"l:1", "l:2", "l:3", "l:4", "l:5"} {
		d.send(d.request("PUT", "/v1/state/"+key, large, "Content-Type", "text/plain")).want(200)
		names += "&key=" + key
	}
	d.get(names).want(413, "body_too_large")
	if page := d.get("/v1/state?prefix=l:&values=true").want(200); page.str("cursor") == "" ||
		page.at("documents.4") != nil {
		d.Error("a page has more than fits")
	}
	tourShown(d, "PatternContention", func(j *jsonOut) {
		writeContention(j, "", &interlock.Contention{Pattern: "account", Commits: 10, Conflicts: 10})
	})
	for _, doc := range fullDocuments() {
		ev := record.Event{
			Kind: record.Written, Claims: []interlock.Claim{{Key: doc.Key}}, Version: doc.Version, ContentType: doc.ContentType,
			Blob: doc.Body,
			Op:   uint8(doc.Op), Agent: doc.Agent, SessionName: doc.Session, Flow: doc.Flow, Actor: doc.Principal,
			Fence: doc.Fence, Note: doc.Note,
		}
		tourShown(d, "Written", func(j *jsonOut) { writeWritten(j, &ev, 8, true) })
	}
}

// tourShown compares what is written with a schema.
func tourShown(d *door, schema string, write func(*jsonOut)) {
	d.Helper()
	doc, err := spec()
	if err != nil {
		d.Fatal(err)
	}
	var j jsonOut
	write(&j)
	if err := compareJSON(doc.Components.Schemas[schema], string(j.b), d.seen); err != nil {
		d.Errorf("%s: %v", j.b, err)
	}
}

// tourActions claims and settles effects.
func tourActions(d *door) {
	const action = `"tool":"charge","target":"customer:1","arguments":{"cents":1200}`
	claim := d.post("/v1/effects", `{"agent":"ann",`+action+`}`).want(200).is("outcome", "claimed")
	id, digest := claim.str("effect.id"), claim.str("effect.action")
	d.post("/v1/effects", `{"agent":"ben",`+action+`}`).want(409, "effect_claimed").is("effect.agent", "ann")
	page := d.get("/v1/effects?state=claimed&limit=1").want(200).is("effects.0.action", digest)
	if page.at("effects.0.id") != nil {
		d.Error("the secret is shown")
	}
	d.post("/v1/effects", `{"agent":"ann","tool":"mail","target":"customer:1"}`).want(200)
	page = d.get("/v1/effects?limit=1").want(200)
	d.get("/v1/effects?limit=1&cursor=" + page.str("cursor")).want(200)
	d.get("/v1/effects?cursor="+page.str("cursor")+"&state=done").want(404, "not_found")
	d.get("/v1/effects/"+digest).want(200).is("effect.state", "claimed")
	d.get("/v1/effects/"+strings.Repeat("0", 64)).want(404, "unknown_effect")
	d.post("/v1/effects/"+id+"/unknown", `{"reason":"timeout"}`).want(200).is("outcome", "unknown")
	d.post("/v1/effects", `{"agent":"ben",`+action+`}`).want(409, "effect_unknown").is("effect.reason", "timeout")
	d.post("/v1/effects/"+digest+"/reconcile", `{"happened":true,"result":{"charge":"ch_1"}}`).want(200).is(
		"outcome", "done",
	)
	d.post("/v1/effects", `{"agent":"ben",`+action+`}`).want(200).is("outcome", "done").is("effect.result.charge", "ch_1")
	mail := d.post("/v1/effects", `{"agent":"ann","tool":"mail","target":"customer:2"}`).want(200)
	d.send(d.request("DELETE", "/v1/effects/"+mail.str("effect.action"), "")).want(409, "effect_claimed")
	d.send(d.request("DELETE", "/v1/effects/"+strings.Repeat("0", 64), "")).want(404, "unknown_effect")
	d.send(d.request("DELETE", "/v1/effects/1", "")).want(400, "invalid_id")
	d.send(d.request("DELETE", "/v1/effects", "")).want(400, "invalid_request").says("detail", "older_than_ms")
	d.send(d.request("DELETE", "/v1/effects?older_than_ms=3600000", "")).want(200).is("outcome", "forgotten")
	d.post("/v1/effects/"+mail.str("effect.id")+"/done", "").want(200)
	d.send(d.request("DELETE", "/v1/effects?older_than_ms=0", "")).want(200)
	again := d.post("/v1/effects", `{"agent":"ann",`+action+`}`).want(200).is("outcome", "claimed")
	d.post("/v1/effects/"+again.str("effect.id")+"/done", "").want(200)
	if got := d.send(d.request("DELETE", "/v1/effects/"+digest, "")).want(200); !strings.Contains(
		got.raw, `"forgotten":1,"more":false`,
	) {
		d.Error(got.raw)
	}
	d.get("/v1/effects/"+digest).want(404, "unknown_effect")
}
