package securitytest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

var tenantAttacks = []attack{
	{
		18, "Listings", "lists everything, with every filter", "nothing in any answer is another tenant's",
		crossListings, nil,
	},
	{
		19, "The journal as a stream",
		"reads events and documents from the first index on, as lines and as server-sent events",
		"nothing of another tenant is in it", crossStreams,
		[]string{"server.TestEventsStayInTheirNamespace"},
	},
	{
		20, "Ids of another tenant",
		"knows every id of another tenant, of leases, tickets, sessions, tasks, effects and runs, and uses it in " +
			"every operation that takes one, in the path, the query, a header or the body",
		"404, in the same words as for an unknown id; the other tenant sees no change", crossIDs,
		[]string{"server.TestTenantsDoNotMeet"},
	},
	{
		21, "Names of another tenant",
		"asks for, writes, locks, revokes and deletes what another tenant has, by its name, in every operation that " +
			"takes one",
		"the same answer as for a name that was never used; the other tenant sees no change", crossNames, nil,
	},
	{
		22, "Cursors of another tenant", "continues another tenant's listing by its cursor",
		"404 not_found, as for an unknown cursor", crossCursors, nil,
	},
	{
		23, "Ids of another tenant on the stream",
		"uses them over the session stream, and attaches to another tenant's session",
		"the same refusal as for an unknown id", crossOnStream, nil,
	},
	{
		24, "One request id for two",
		"sends another tenant's Idempotency-Key with the same body, and with another one, to be given its answer",
		"the call is a new one: request ids are a tenant's own", crossRequestIDs, nil,
	},
	{
		25, "Separators between namespace and key",
		"builds a key that another tenant's would be if the two were put together with a separator",
		"the keys are as far apart as any others, everywhere they are used", separators, nil,
	},
	{
		26, "Waiting for another tenant",
		"declares that it waits for an agent of another tenant, so as to see it, or to close a cycle with it",
		"no edge leads from one tenant to another", crossWaits, nil,
	},
	{
		27, "Another tenant's files", "reads and writes files that another tenant shares",
		"404, whether there is such a file or not", crossFiles, nil,
	},
	{
		28, "Figures", "reads the metrics",
		"no key, agent, queue, purpose or id stands in them, however many there are; namespaces and their patterns are shown to the role `metrics` alone",
		figures,
		[]string{"server.TestMetrics", "server.TestMetricsByNamespaceNeedTheRole"},
	},
}

// volatile matches the parts in which two answers to the same request may differ.
var volatile = regexp.MustCompile(
	`whsec_[A-Za-z0-9+/=]+|` +
		`"[0-9]+"|[lstqe]_[0-9a-f]{32}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|_ms":[0-9]+|[0-9a-f]{64}|` +
		`s-[0-9a-f]{12}|l-[0-9a-f]{24}|[0-9.a-z]+ so far`,
)

// plain is an answer without what is volatile, and with the names that were asked for
// as words.
func plain(a *answer, names ...things) string {
	text := a.raw
	for _, w := range names {
		for word, thing := range w {
			text = strings.ReplaceAll(text, thing, "{"+word+"}")
		}
	}
	return fmt.Sprint(a.status, " ", volatile.ReplaceAllString(text, "0"))
}

// view is all that acme sees of itself, without sentences that contain times.
func (s *site) view(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, op := range s.operations(t) {
		if op.method == "GET" && !op.process && !op.endless && !op.wakes && len(op.foreignReference.path) == 0 &&
			!slices.Contains([]string{"getWhy", "getOverview", "getPast", "listEvents"}, op.id) {
			secret := s.secrets[acme]
			if op.only {
				secret = s.operators[acme]
			}
			got := s.send(t, op.call(op.trials()[0], nil, secret)).want(200)
			b.WriteString(op.id + " " + volatile.ReplaceAllString(got.raw, "0") + "\n")
		}
	}
	return b.String()
}

// worlds are made once: what acme has, and what never was.
func (s *site) worlds(t *testing.T) (theirs, never things) {
	t.Helper()
	if s.theirs == nil {
		s.theirs = s.world(t)
		s.never = nowhere(s.theirs)
		s.operator(t, rival, "PUT", "/v1/patterns/runs", `{"pattern":"org:{org}/runs","capacity":100}`).want(200)
	}
	return s.theirs, s.never
}

// cross carries out every trial that names a thing that wanted is true of, once with acme's and
// once with one that never was, and compares the two.
func cross(
	t *testing.T, s *site, wanted func(words []string) bool, check func(op *operation, tr trial, got *answer),
) (tried int) {
	t.Helper()
	theirs, never := s.worlds(t)
	before := s.view(t)
	if len(before) < 2000 || !strings.Contains(before, mark) {
		t.Fatalf("acme sees only %s", before)
	}
	for _, op := range s.operations(t) {
		for _, tr := range op.trials() {
			if op.process || !wanted(words(&op, tr)) {
				continue
			}
			tried++
			none := s.send(t, op.call(tr, never, op.credential(s, rival)))
			got := s.send(t, op.call(tr, theirs, op.credential(s, rival)))
			if have, want := plain(got, theirs, never), plain(none, theirs, never); have != want {
				t.Errorf(
					"%s %s %s tells\n%s\nof what another tenant has, and\n%s\nof what never was", op.id, tr.path, tr.body, have, want,
				)
			}
			check(&op, tr, got)
		}
	}
	if after := s.view(t); after != before {
		t.Errorf("acme sees a change:\n%s\nwas\n%s", after, before)
	}
	return tried
}

var wordOf = regexp.MustCompile(`\{([a-z.]+)\}`)

// words are the things that a trial names.
func words(op *operation, tr trial) (list []string) {
	for _, found := range wordOf.FindAllStringSubmatch(tr.path+tr.body+strings.Join(op.header, " "), -1) {
		list = append(list, found[1])
	}
	return list
}

func kind(list []string) (ids, cursors, names int) {
	for _, word := range list {
		switch {
		case word == "any": // of a pattern's shape
		case strings.HasPrefix(word, "cursor."):
			cursors++
		case isNamed(word):
			names++
		default:
			ids++
		}
	}
	return ids, cursors, names
}

func crossIDs(t *testing.T, s *site) {
	tried := cross(
		t, s, func(list []string) bool { ids, _, _ := kind(list); return ids > 0 },
		func(op *operation, tr trial, got *answer) {
			if got.status != 404 {
				t.Errorf("%s %s %s with another tenant's id: %d %s", op.id, tr.path, tr.body, got.status, got.raw)
			}
		},
	)
	if tried < 40 {
		t.Errorf("only %d operations take an id", tried)
	}
	// The ids are good ones: their owner gets another answer.
	theirs, _ := s.worlds(t)
	for _, id := range []string{"lease", "run", "parked"} {
		s.agent(t, acme, "GET", "/v1/leases/"+theirs[id], "").want(200)
	}
	s.agent(t, acme, "GET", "/v1/tickets/"+theirs["ticket"], "").want(202)
	s.agent(t, acme, "POST", "/v1/sessions/"+theirs["session"]+"/heartbeat", `{}`).want(200)
	s.agent(t, acme, "GET", "/v1/tasks/"+theirs["task"], "").want(200)
	s.agent(t, acme, "GET", "/v1/effects/"+theirs["digest"], "").want(200)
	s.agent(t, acme, "POST", "/v1/effects/"+theirs["effect"]+"/unknown", `{}`).want(200)
}

func crossNames(t *testing.T, s *site) {
	tried := cross(
		t, s, func(list []string) bool { ids, cursors, names := kind(list); return ids+cursors == 0 && names > 0 },
		func(*operation, trial, *answer) {},
	)
	if tried < 30 {
		t.Errorf("only %d operations take a name", tried)
	}
	theirs, _ := s.worlds(t)
	for _, path := range []string{"/v1/queues/{queue}", "/v1/patterns/{pattern}", "/v1/state/{key}", "/v1/files/{file}"} {
		s.agent(t, acme, "GET", theirs.fill(path), "").want(200)
	}
}

func crossCursors(t *testing.T, s *site) {
	tried := cross(
		t, s, func(list []string) bool { _, cursors, _ := kind(list); return cursors > 0 },
		func(op *operation, tr trial, got *answer) {
			if !got.is(404, "not_found") {
				t.Errorf("%s %s: %d %s", op.id, tr.path, got.status, got.raw)
			}
			theirs, _ := s.worlds(t)
			if own := s.send(t, op.call(tr, theirs, s.secrets[acme])); own.status != 200 {
				t.Errorf("%s %s: its owner gets %d %s", op.id, tr.path, own.status, own.raw)
			}
		},
	)
	if tried != 9 {
		t.Errorf("%d listings have cursors", tried)
	}
}

// markless checks that nothing of acme is in rival's answers; text of rival's own requests may
// be quoted.
func markless(t *testing.T, s *site, what, text string) {
	t.Helper()
	theirs, _ := s.worlds(t)
	for word, thing := range theirs {
		if !isNamed(word) && strings.Contains(text, thing) {
			t.Errorf("%s has acme's %s", what, word)
		}
	}
	if i := strings.Index(text, mark); i >= 0 {
		t.Errorf("%s has something of acme: %.200s", what, text[max(0, i-50):])
	}
}

func crossListings(t *testing.T, s *site) {
	s.worlds(t)
	tried := 0
	for _, op := range s.operations(t) {
		if op.method != "GET" || op.endless || op.id == "getWhy" || op.id == "getPast" || op.id == "getBackup" ||
			op.id == "listShards" || len(op.foreignReference.path) > 0 {
			continue
		}
		for _, tr := range op.trials() {
			if list := words(&op, tr); len(list) > 0 || strings.Contains(tr.path, mark) {
				continue
			}
			tried++
			markless(t, s, op.id, s.send(t, op.call(tr, nil, op.credential(s, rival))).want(200).raw)
		}
	}
	if tried < 18 {
		t.Errorf("only %d listings", tried)
	}
}

func crossStreams(t *testing.T, s *site) {
	s.worlds(t)
	s.agent(
		t, rival, "POST", "/v1/commits", `{"agent":"last-writer","writes":[{"key":"g:last","put":"the last one"}]}`,
	).want(200)
	for _, path := range []string{"/v1/events?from=1&follow=true", "/v1/watch?from=1&values=true"} {
		for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
			text := s.follow(t, s.secrets[rival], path, "Accept", accept).until("last-writer")
			markless(t, s, path, text)
		}
	}
}

func crossOnStream(t *testing.T, s *site) {
	theirs, never := s.worlds(t)
	before := s.view(t)
	l := s.agentStream(t, rival)
	ops := func(w things) []proto.Op {
		return []proto.Op{
			{
				Kind: proto.OpAttach, Slot: uint32(len(w["session"])) + uint32(w["session"][2]),
				ID: idOf(w["session"]),
			},
			{Kind: proto.OpGetLease, ID: idOf(w["lease"])},
			{Kind: proto.OpRenew, ID: idOf(w["lease"])},
			{Kind: proto.OpRelease, ID: idOf(w["lease"])},
			{
				Kind: proto.OpConvert, ID: idOf(w["lease"]),
				LeaseRequest: interlock.LeaseRequest{Claims: []interlock.Claim{{Key: "g:1"}}},
			},
			{Kind: proto.OpPark, ID: idOf(w["lease"])},
			{Kind: proto.OpResume, ID: idOf(w["parked"])},
			{Kind: proto.OpArrive, ID: idOf(w["lease"])},
			{Kind: proto.OpPoll, ID: idOf(w["ticket"])},
			{Kind: proto.OpLeave, ID: idOf(w["ticket"])},
			{Kind: proto.OpCommit, Commit: &interlock.CommitRequest{
				Leases: []interlock.LeaseID{idOf(w["lease"])},
				Writes: []interlock.Write{{Key: "g:1", Op: interlock.Put, Body: []byte("1")}},
			}},
			{Kind: proto.OpSettleEffect, ID: idOf(w["effect"]), Effect: &proto.EffectOp{}},
			{Kind: proto.OpGetEffect, Effect: &proto.EffectOp{Digest: [32]byte(bytesOf(w["digest"]))}},
			{Kind: proto.OpAckTask, ID: idOf(w["lease"]), Task: &proto.TaskOp{}},
			{Kind: proto.OpNackTask, ID: idOf(w["lease"]), Task: &proto.TaskOp{}},
			{
				Kind: proto.OpAskHuman, ID: idOf(w["lease"]),
				Task: &proto.TaskOp{Question: &interlock.Question{Text: "may I?"}},
			},
			{
				Kind: proto.OpAnswerTask, ID: idOf(w["task"]),
				Task: &proto.TaskOp{Verdict: interlock.Denied, By: "eve"},
			},
			{Kind: proto.OpChangeTask, ID: idOf(w["task"]), Task: &proto.TaskOp{Change: proto.CancelTask}},
			{Kind: proto.OpFollowTask, ID: idOf(w["task"]), Task: &proto.TaskOp{}},
			{Kind: proto.OpGetTask, ID: idOf(w["task"])},
		}
	}
	seq := uint64(0)
	ask := func(op proto.Op) string {
		seq++
		op.Seq = seq
		l.send(op)
		r := l.reply(seq)
		return fmt.Sprintf("%v %s %s", r.Outcome, r.Code, volatile.ReplaceAllString(r.Message, "0"))
	}
	nevers := ops(never)
	for i, op := range ops(theirs) {
		none, got := ask(nevers[i]), ask(op)
		if got != none {
			t.Errorf("operation %d: %s of another tenant's, and %s of what never was", op.Kind, got, none)
		}
		if !strings.Contains(got, "unknown_") && !strings.Contains(got, "not_found") {
			t.Errorf("operation %d: %s", op.Kind, got)
		}
	}
	if after := s.view(t); after != before {
		t.Errorf("acme sees a change:\n%s\nwas\n%s", after, before)
	}
}

func crossRequestIDs(t *testing.T, s *site) {
	const id = "nightly-run-1"
	ask := func(tenant, agent string) *answer {
		return s.agent(
			t, tenant, "POST", "/v1/leases", `{"agent":"`+agent+`","claims":[{"key":"r:1"}]}`, "Idempotency-Key", id,
		)
	}
	theirs := ask(acme, "a").want(200).must("lease.id")
	if again := ask(acme, "a").want(200).must("lease.id"); again != theirs {
		t.Error("a request id gives its own tenant another answer")
	}
	if ours := ask(rival, "a").want(200).must("lease.id"); ours == theirs {
		t.Error("a request id gives another tenant's lease away")
	}
	ask(acme, "b").want(422, "request_id_reused")
	s.agent(t, rival, "POST", "/v1/leases", `{"agent":"c","claims":[{"key":"r:2"}]}`, "Idempotency-Key", id+"2").want(200)
}

func separators(t *testing.T, s *site) {
	s.worlds(t)
	s.agent(t, acme, "POST", "/v1/leases", `{"claims":[{"key":"x:1"}]}`).want(200)
	for _, key := range []string{
		"acme/x:1", "acme:x:1", "acme|x:1", "acme x:1", "acme.x:1", "x:1", "default/x:1", "rival/x:1", "acme,x:1",
		"acme#x:1", "acme%2fx:1",
	} {
		lease := s.agent(
			t, rival, "POST", "/v1/leases", fmt.Sprintf(`{"claims":[{"key":%q}]}`, key),
		).want(200).must("lease.id")
		s.agent(
			t, rival, "POST", "/v1/commits", fmt.Sprintf(`{"leases":[%q],"writes":[{"key":%q,"put":"rival"}]}`, lease, key),
		).want(200)
	}
	for _, key := range []string{
		"acme\\u0000x:1", "/acme/x:1", "acme//x:1", "../acme/x:1", "acme/../acme/x:1", "x:1\\u0000", "\\u001facme\\u001fx:1",
	} {
		s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"`+key+`"}]}`).want(400, "invalid_key")
	}
	if got := s.agent(t, acme, "GET", "/v1/state/x:1", ""); got.status != 404 {
		t.Errorf("acme finds %s", got.raw)
	}
	// Nor can a credential be made for a namespace with a separator in its name.
	for _, space := range []string{"acme/x", "acme x", "acme\tx", "acme\nglobex", ""} {
		if out, code := s.command(t, "", "credential", "new", "eve", "--for", space); code == 0 {
			t.Errorf("a credential for %q: %s", space, out)
		}
	}
}

func crossWaits(t *testing.T, s *site) {
	s.worlds(t)
	const there, here = "acme-waiter", "rival-waiter"
	wait := func(tenant, agent, on string) string {
		session := s.agent(t, tenant, "POST", "/v1/sessions", `{"agent":"`+agent+`"}`).want(200).must("session.id")
		s.agent(t, tenant, "POST", "/v1/waits", `{"session":"`+session+`","on":{"agent":"`+on+`"},"wait_ms":0}`)
		return session
	}
	first, second := wait(acme, there, here), wait(rival, here, there)
	for tenant, other := range map[string]string{acme: here, rival: there} {
		for _, edge := range []string{"/v1/waits", "/v1/why?agent=" + other} {
			if got := s.agent(t, tenant, "GET", edge, "").want(200); strings.Contains(got.raw, `"holder"`) &&
				strings.Contains(got.raw, other) {
				t.Errorf("%s sees %s", tenant, got.raw)
			}
		}
	}
	s.agent(t, acme, "DELETE", "/v1/sessions/"+first, "").want(200)
	s.agent(t, rival, "DELETE", "/v1/sessions/"+second, "").want(200)
}

func crossFiles(t *testing.T, s *site) {
	theirs, _ := s.worlds(t)
	none := s.agent(t, rival, "GET", "/v1/files/nothing.txt", "").want(404)
	got := s.agent(t, rival, "GET", "/v1/files/"+theirs["file"], "").want(404)
	if plain(got, things{"file": theirs["file"]}) != plain(none, things{"file": "nothing.txt"}) {
		t.Errorf("%s and %s", got.raw, none.raw)
	}
	for _, path := range []string{
		"..%2facme%2f" + theirs["file"], "%2e%2e/acme/" + theirs["file"], "..%5cacme%5c" + theirs["file"],
	} {
		if got := s.agent(t, rival, "GET", "/v1/files/"+path, ""); got.status != 400 ||
			strings.Contains(got.raw, `"`+mark+`"`) {
			t.Errorf("%s: %d %s", path, got.status, got.raw)
		}
	}
	s.agent(t, acme, "GET", "/v1/files/"+theirs["file"], "").want(200)
}

func figures(t *testing.T, s *site) {
	s.worlds(t)
	text := s.agent(t, rival, "GET", "/metrics", "").want(200).raw
	markless(t, s, "the metrics", text)
	series := func() int {
		return len(strings.Split(s.agent(t, rival, "GET", "/metrics", "").want(200).raw, "\n"))
	}
	name := func(i int) string { return fmt.Sprintf("label-%d", i) }
	use := func(i int) {
		n := name(i)
		lease := s.agent(
			t, rival, "POST", "/v1/leases", `{"agent":"`+n+`","purpose":"`+n+`","claims":[{"key":"`+n+`:1"}]}`,
		).want(200).must("lease.id")
		s.agent(t, rival, "POST", "/v1/leases/"+lease+"/release", `{"outcome":"`+n+`"}`).want(200)
		s.agent(t, rival, "GET", "/v1/"+n, "")
		s.agent(t, rival, "POST", "/v1/tasks", `{"queue":"`+n+`","kind":"`+n+`"}`)
		s.agent(t, rival, "POST", "/v1/effects", `{"tool":"`+n+`","target":"`+n+`"}`)
	}
	use(0)
	before := series()
	for i := range 30 {
		use(i + 1)
	}
	if after := series(); after > before+3 {
		t.Errorf("30 names make %d more lines of metrics", after-before)
	}
	text = s.agent(t, rival, "GET", "/metrics", "").want(200).raw
	text += s.operator(t, rival, "GET", "/metrics", "").want(200).raw
	text += s.send(t, ask{method: "GET", path: "/metrics", as: s.servers[rival]}).want(200).raw
	for _, word := range []string{"label-", "g:1", rival, acme} {
		if strings.Contains(text, word) {
			t.Errorf("%s stands in the metrics", word)
		}
	}
	lines, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	secret, line, err := server.NewCredential(interlock.Principal{Name: "scraper", Roles: interlock.RoleMetrics}, acme)
	if err != nil {
		t.Fatal(err)
	}
	s.reload(t, string(lines)+line+"\n")
	defer s.reload(t, string(lines))
	text = s.send(t, ask{method: "GET", path: "/metrics", as: secret}).want(200).raw
	if !strings.Contains(text, `{namespace="`+rival+`",pattern=""}`) || strings.Contains(text, "label-") ||
		strings.Contains(text, "g:1") {
		t.Errorf("the role metrics sees %s", text)
	}
}
