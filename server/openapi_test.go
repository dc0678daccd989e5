package server

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/problem"
	"github.com/interlockdev/interlock/shard"
)

func TestOpenAPIHasTheRoutes(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, rt := range slices.Concat(openRoutes, routes) {
		for _, m := range rt.methods {
			have = append(have, m.name+" "+rt.path)
			op := doc.Paths.Value(rt.path).GetOperation(m.name)
			if op == nil {
				continue
			}
			if handler := handlerName(m.handle); handler != op.OperationID {
				t.Errorf("%s %s: the handler is %s, the operationId %s", m.name, rt.path, handler, op.OperationID)
			}
			var query []string
			for _, p := range op.Parameters {
				if p.Value.In == openapi3.ParameterInQuery {
					query = append(query, p.Value.Name)
				}
			}
			known := slices.Clone(m.query)
			for i := range known {
				known[i] = strings.TrimSuffix(known[i], "...")
			}
			if !slices.Equal(slices.Sorted(slices.Values(query)), slices.Sorted(slices.Values(known))) {
				t.Errorf("%s %s: documented parameters %v, the door knows %v", m.name, rt.path, query, m.query)
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			want = append(want, method+" "+path)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the door has %v,\nopenapi.json has %v", have, want)
	}
}

// handlerName returns the name of the method that a route calls.
func handlerName(handle func(*call)) string {
	name := runtime.FuncForPC(reflect.ValueOf(handle).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:]
}

func TestOpenAPIHasTheFieldsOfBodies(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string][]string{
		"AcquireRequest": acquireRequestFields, "ClaimRequest": claimFields, "ConvertRequest": convertRequestFields,
		"ArriveRequest": arriveRequestFields,
		"ParkRequest":   parkRequestFields, "ResumeRequest": resumeRequestFields, "DeclareRequest": declareRequestFields,
		"ReleaseRequest": releaseRequestFields, "RenewRequest": renewRequestFields,
		"HeartbeatRequest":   heartbeatRequestFields,
		"OpenSessionRequest": openSessionRequestFields,
		"CheckFenceRequest":  checkFenceRequestFields, "StatementRequest": statementRequestFields,
		"RevokeRequest": revokeRequestFields,
		"CommitRequest": commitRequestFields, "ReadRequest": readRequestFields, "WriteRequest": writeFields,
		"EffectRequest": effectRequestFields,
		"DoneRequest":   doneRequestFields, "ReasonRequest": reasonRequestFields, "ReconcileRequest": reconcileRequestFields,
		"SubmitRequest": submitRequestFields, "TaskRequest": taskRequestFields, "MessageRequest": messageRequestFields,
		"Question":          questionRequestFields,
		"ChangeTaskRequest": changeTaskRequestFields, "PullRequest": pullRequestFields, "AckRequest": ackRequestFields,
		"NackRequest": nackRequestFields,
		"SendRequest": sendRequestFields, "WriterRequest": writerRequestFields, "AnswerRequest": answerRequestFields,
		"QueueRequest": queueRequestFields,
		"RunRequest":   runRequestFields, "RevertRequest": revertRequestFields,
		"SetPatternRequest": setPatternRequestFields,
		"SettingsRequest":   settingsRequestFields,
		"Quota":             quotaFields,
	} {
		documented := slices.Sorted(maps.Keys(doc.Components.Schemas[name].Value.Properties))
		if !slices.Equal(documented, slices.Sorted(slices.Values(fields))) {
			t.Errorf("%s: documented %v, the door knows %v", name, documented, fields)
		}
	}
}

// TestOpenAPIExamples checks that every answer in JSON has an example, and that examples are valid. Those of
// answers are real ones, which the tours got.
func TestOpenAPIExamples(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	check := func(at string, content openapi3.Content, required bool) {
		for kind, media := range content {
			if media.Example == nil {
				if required && strings.Contains(kind, "json") && !media.Schema.Value.IsEmpty() {
					t.Errorf("%s has no example of %s", at, kind)
				}
				continue
			}
			if err := valid(media.Schema, media.Example); err != nil {
				t.Errorf("%s: the example is none: %v", at, err)
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody != nil {
				check(method+" "+path, op.RequestBody.Value.Content, false)
			}
			for status, answer := range op.Responses.Map() {
				check(method+" "+path+" "+status, answer.Value.Content, path != "/openapi.json")
			}
		}
	}
}

func TestOpenAPIHasTheCodes(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, code := range doc.Components.Schemas["Code"].Value.Enum {
		documented = append(documented, code.(string))
	}
	var have []string
	for _, code := range problem.Codes() {
		have = append(have, string(code))
	}
	slices.Sort(documented)
	slices.Sort(have)
	if !slices.Equal(documented, have) {
		t.Errorf(
			"server/openapi.json has other codes than internal/problem/code.go, run make generate:\n%v\n%v", documented, have,
		)
	}
}

// namesFrom lists what a function returns for 1, 2, 3, ... up to the first empty name.
func namesFrom(name func(int) string) (list []any) {
	for i := 1; name(i) != ""; i++ {
		list = append(list, name(i))
	}
	return list
}

// The closed lists of the engine and of the root package, and their limits, are those
// of openapi.json.
func TestOpenAPIHasTheListsAndLimits(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	property := func(schema, name string) *openapi3.Schema {
		return doc.Components.Schemas[schema].Value.Properties[name].Value
	}
	words := func(schema string) []any { return doc.Components.Schemas[schema].Value.Enum }
	for name, c := range map[string]struct{ documented, have []any }{
		"modes":    {words("Mode"), namesFrom(func(i int) string { return interlock.Mode(i).String() })},
		"liveness": {words("Liveness"), namesFrom(func(i int) string { return interlock.Liveness(i).String() })},
		"states":   {words("LeaseState"), namesFrom(func(i int) string { return interlock.LeaseState(i).String() })},
		"tasks":    {words("TaskState"), namesFrom(func(i int) string { return interlock.TaskState(i).String() })},
		"verdicts": {words("Verdict"), namesFrom(func(i int) string { return interlock.Verdict(i).String() })},
		"writes":   {words("WriteOp"), namesFrom(func(i int) string { return interlock.WriteOp(i).String() })},
		"reasons":  {words("EndReason"), namesFrom(func(i int) string { return record.Reason(i).String() })},
		"events": {words("EventKind"), slices.DeleteFunc(
			namesFrom(func(i int) string { return record.Kind(i).String() }), func(name any) bool {
				return name == record.Answered.String()
			},
		)},
	} {
		missing := slices.DeleteFunc(slices.Clone(c.have), func(v any) bool { return slices.Contains(c.documented, v) })
		if len(missing) > 0 || len(c.documented) != len(c.have) {
			t.Errorf("%s: documented %v, there are %v", name, c.documented, c.have)
		}
	}
	for name, c := range map[string]struct {
		documented *float64
		have       float64
	}{
		"permits":     {property("ClaimRequest", "permits").Max, interlock.MaxCount},
		"parties":     {property("ClaimRequest", "parties").Max, interlock.MaxParties},
		"parts":       {property("ClaimRequest", "parts").Max, interlock.MaxParts},
		"stall":       {property("AcquireRequest", "stall_ms").Max, float64(interlock.MaxStall.Milliseconds())},
		"lock_delay":  {property("AcquireRequest", "lock_delay_ms").Max, float64(interlock.MaxLockDelay.Milliseconds())},
		"max_wait":    {property("AcquireRequest", "max_wait_ms").Max, float64(interlock.MaxMaxWait.Milliseconds())},
		"max_hold":    {property("AcquireRequest", "max_hold_ms").Max, float64(interlock.MaxMaxHold.Milliseconds())},
		"for":         {property("ParkRequest", "for_ms").Max, float64(interlock.MaxPark.Milliseconds())},
		"capacity":    {property("PatternRequest", "capacity").Max, interlock.MaxCount},
		"max_waiters": {property("PatternRequest", "max_waiters").Max, interlock.MaxWaitersPerKey},
		"effect ttl":  {property("EffectRequest", "ttl_ms").Max, float64(interlock.MaxEffectTTL.Milliseconds())},
	} {
		if c.documented == nil || *c.documented != c.have {
			t.Errorf("%s: openapi.json has another limit than %v", name, c.have)
		}
	}
	for name, c := range map[string]struct {
		documented *uint64
		have       uint64
	}{
		"claims":  {property("AcquireRequest", "claims").MaxItems, interlock.MaxAlternatives},
		"members": {property("PatternRequest", "members").MaxItems, interlock.MaxMembers},
		"groups":  {property("PatternRequest", "groups").MaxItems, interlock.MaxGroups},
		"aliases": {property("PatternRequest", "aliases").MaxItems, 16},
		"reads":   {property("CommitRequest", "reads").MaxItems, interlock.MaxReads},
		"writes":  {property("CommitRequest", "writes").MaxItems, interlock.MaxWrites},
		"leases":  {property("CommitRequest", "leases").MaxItems, interlock.MaxClaims},
	} {
		if c.documented == nil || *c.documented != c.have {
			t.Errorf("%s: openapi.json has another limit than %v", name, c.have)
		}
	}
}

// TestOpenAPI drives every operation into every documented status, compares each
// answer, and at the end asks for each documented field whether it was ever seen.
func TestOpenAPI(t *testing.T) {
	seen := &sightings{answers: map[string]bool{}, fields: map[string]bool{}}
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.seen = seen
		tourLeases(d)
		tourLooking(d)
		tourPast(d)
		tourOverview(d)
		tourTimeline(d)
		tourReport(d)
		tourShards(d)
		tourStandby(d)
		tourSessions(d)
		tourOperators(d)
		tourStatements(d)
		tourState(d)
		tourActions(d)
		tourTasks(d)
		tourMailbox(d)
		tourRuns(d)
		tourWebhooks(d)
		tourBarrier(d)
		tourParts(d)
		tourParked(d)
		tourDifferences(d)
		tourListings(d)
		tourEvents(d)
		tourEventFields(d)
		tourBadRequests(d)
	})
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.seen = seen
		tourFaults(d)
		tourCredentials(d)
	})
	tourFiles(t, seen)
	all, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range slices.Sorted(maps.Keys(all.answers)) {
		if !seen.answers[answer] {
			t.Errorf("never seen: %s", answer)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(all.fields)) {
		if !seen.fields[field] {
			t.Errorf("never seen: field %s", field)
		}
	}
}

// sample is a request that gets as far as the shard. kind is its content type, JSON
// if it is empty.
type sample struct{ method, path, body, kind string }

// samples has one for each operation.
func samples() []sample {
	const lease, ticket, session = "l_00000000000000000000000000000001", "t_00000000000000000000000000000001", "s_00000000000000000000000000000001"
	const task = "q_00000000000000000000000000000001"
	const effect, digest = "e_00000000000000000000000000000001", "00000000000000000000000000000000000000000000000000000000000000ff"
	return []sample{
		{"POST", "/v1/leases", `{"claims":[{"key":"a"}]}`, ""},
		{"GET", "/v1/leases/" + lease, "", ""},
		{"POST", "/v1/leases/" + lease + "/renew", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/release", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/convert", `{"claims":[{"key":"a"}]}`, ""},
		{"POST", "/v1/leases/" + lease + "/arrive", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/park", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/resume", `{}`, ""},
		{"GET", "/v1/tickets/" + ticket, "", ""},
		{"DELETE", "/v1/tickets/" + ticket, "", ""},
		{"POST", "/v1/sessions", `{}`, ""},
		{"GET", "/v1/sessions/" + session, "", ""},
		{"DELETE", "/v1/sessions/" + session, "", ""},
		{"POST", "/v1/sessions/" + session + "/heartbeat", `{}`, ""},
		{"GET", "/v1/keys", "", ""},
		{"GET", "/v1/keys/a/b", "", ""},
		{"GET", "/v1/waits", "", ""},
		{"POST", "/v1/waits", `{"on":{"agent":"support-2"}}`, ""},
		{"GET", "/v1/why?key=a", "", ""},
		{"GET", "/v1/overview", "", ""},
		{"GET", "/v1/timeline?since=1h", "", ""},
		{"GET", "/v1/report", "", ""},
		{"GET", "/v1/at?path=keys&index=1", "", ""},
		{"GET", "/v1/differences?from=1", "", ""},
		{"GET", "/v1/hot", "", ""},
		{"GET", "/v1/events", "", ""},
		{"GET", "/v1/state?key=a&key=b", "", ""},
		{"GET", "/v1/state", "", ""},
		{"GET", "/v1/state/a", "", ""},
		{"PUT", "/v1/state/a", `{}`, anyBytes},
		{"PATCH", "/v1/state/a", `{}`, mergePatchType},
		{"DELETE", "/v1/state/a", "", ""},
		{"GET", "/v1/history/a", "", ""},
		{"GET", "/v1/watch?key=a", "", ""},
		{"POST", "/v1/commits", `{"writes":[{"key":"a","add":1}]}`, ""},
		{"GET", "/v1/contention", "", ""},
		{"GET", "/v1/effects", "", ""},
		{"POST", "/v1/effects", `{"tool":"charge","target":"customer:1"}`, ""},
		{"DELETE", "/v1/effects?older_than_ms=1000", "", ""},
		{"GET", "/v1/effects/" + digest, "", ""},
		{"DELETE", "/v1/effects/" + digest, "", ""},
		{"POST", "/v1/effects/" + effect + "/done", `{}`, ""},
		{"POST", "/v1/effects/" + effect + "/unknown", `{}`, ""},
		{"POST", "/v1/effects/" + effect + "/cancel", `{}`, ""},
		{"POST", "/v1/effects/" + digest + "/reconcile", `{"happened":true}`, ""},
		{"GET", "/v1/tasks", "", ""},
		{"POST", "/v1/tasks", `{"queue":"fees"}`, ""},
		{"GET", "/v1/tasks/" + task, "", ""},
		{"POST", "/v1/tasks/" + task + "/cancel", `{}`, ""},
		{"POST", "/v1/tasks/" + task + "/reschedule", `{}`, ""},
		{"POST", "/v1/tasks/" + task + "/replay", `{}`, ""},
		{"POST", "/v1/tasks/" + task + "/discard", `{}`, ""},
		{"GET", "/v1/queues", "", ""},
		{"GET", "/v1/queues/fees", "", ""},
		{"PUT", "/v1/queues/fees", `{}`, ""},
		{"GET", "/v1/webhooks", ``, ""},
		{"GET", "/v1/webhooks/ops", ``, ""},
		{"PUT", "/v1/webhooks/ops", `{"url":"https://a.example/","events":["*"]}`, ""},
		{"DELETE", "/v1/webhooks/ops", ``, ""},
		{"POST", "/v1/webhooks/ops/rotate", `{}`, ""},
		{"POST", "/v1/webhooks/ops/test", `{}`, ""},
		{"DELETE", "/v1/queues/fees", "", ""},
		{"POST", "/v1/queues/fees/pause", `{}`, ""},
		{"POST", "/v1/queues/fees/drain", `{}`, ""},
		{"POST", "/v1/queues/fees/resume", `{}`, ""},
		{"POST", "/v1/queues/fees/pull", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/ack", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/nack", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/ask", `{"question":"may I?"}`, ""},
		{"GET", "/v1/writers", "", ""},
		{"PUT", "/v1/writers/account", `{"queue":"fees"}`, ""},
		{"DELETE", "/v1/writers/account", "", ""},
		{"POST", "/v1/mailbox/account:1", `{}`, ""},
		{"GET", "/v1/mailbox/account:1/log", "", ""},
		{"GET", "/v1/approvals", "", ""},
		{"GET", "/v1/status", "", ""},
		{"GET", "/v1/parked", "", ""},
		{"GET", "/v1/leases", "", ""},
		{"GET", "/v1/tickets", "", ""},
		{"GET", "/v1/sessions", "", ""},
		{"POST", "/v1/approvals/" + task, `{"verdict":"approved"}`, ""},
		{"GET", "/v1/runs", "", ""},
		{"POST", "/v1/runs", `{"org":"acme","workflow":"triage","wait_ms":0}`, ""},
		{"POST", "/v1/runs/" + lease + "/end", `{}`, ""},
		{"POST", "/v1/leases/" + lease + "/statement", `{}`, ""},
		{"GET", "/v1/fences/keys", "", ""},
		{"GET", "/v1/shards", "", ""},
		{"POST", "/v1/shards", `{"store":"fast","shards":4}`, ""},
		{"POST", "/v1/moves", `{"namespace":"acme","shard":7}`, ""},
		{"DELETE", "/v1/moves/3", "", ""},
		{"POST", "/v1/servers/drain", `{"server":"http://10.0.0.1:7420"}`, ""},
		{"POST", "/v1/fences/keys/rotate", `{}`, ""},
		{"GET", "/v1/journal/head", "", ""},
		{"GET", "/v1/admin/backup", "", ""},
		{"POST", "/v1/fences/check", `{"key":"a","fence":"1"}`, ""},
		{"POST", "/v1/revocations", `{"key":"a","fence":"1"}`, ""},
		{"POST", "/v1/yield-requests", `{"key":"a","fence":"1"}`, ""},
		{"GET", "/v1/patterns", "", ""},
		{"GET", "/v1/patterns/org", "", ""},
		{"PUT", "/v1/patterns/org", `{"pattern":"org:{id}"}`, ""},
		{"DELETE", "/v1/patterns/org", "", ""},
		{"GET", "/v1/patterns/org/revisions", "", ""},
		{"POST", "/v1/patterns/org/revert", `{}`, ""},
		{"DELETE", "/v1/namespaces/default?force=true", "", ""},
		{"GET", "/v1/namespace", "", ""},
		{"PUT", "/v1/namespace", `{}`, ""},
		{"GET", "/healthz", "", ""},
		{"GET", "/readyz", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/openapi.json", "", ""},
		{"GET", "/llms.txt", "", ""},
		{"GET", "/", "", ""},
	}
}

// faulty is a shard with answers that are all an error, or all an effect.
type faulty struct {
	Shard
	err error
	eff *engine.Effect
}

func (f faulty) Do(context.Context, engine.Command) (engine.Effect, interlock.At, error) {
	if f.eff != nil {
		return *f.eff, f.At(), nil
	}
	return engine.Effect{}, interlock.At{}, f.err
}

func (f faulty) Submit(cmds ...engine.Command) error {
	if c, pulls := cmds[0].(*engine.Pull); pulls && f.eff != nil {
		c.From.(inbox).Deliver(f.eff, f.At())
	}
	return f.err
}

func (f faulty) Read(
	ctx context.Context, ns interlock.Namespace, query func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	if f.err == nil {
		return f.Shard.Read(ctx, ns, query)
	}
	return interlock.At{}, f.err
}

func (f faulty) Survey(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	return interlock.At{}, f.err
}

func (f faulty) LookBack(
	context.Context, *shard.Past, interlock.Index, engine.Time, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	return interlock.At{}, f.err
}

func (f faulty) Compare(
	context.Context, *shard.Past, shard.Moment, shard.Moment, func(first, second *engine.Engine) bool,
) (interlock.At, interlock.Index, error) {
	return interlock.At{}, 0, f.err
}

func (f faulty) Head(context.Context) (string, interlock.At, error) { return "", interlock.At{}, f.err }
func (f faulty) Backup(context.Context) (*shard.Backup, error)      { return nil, f.err }
func (f faulty) Failed() <-chan struct{}                            { return closedChannel }
func (f faulty) Err() error                                         { return f.err }

var closedChannel = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// largeShard is a shard with states that are too large for questions about the past.
type largeShard struct{ Shard }

func (largeShard) LookBack(
	context.Context, *shard.Past, interlock.Index, engine.Time, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	return interlock.At{}, shard.ErrTooLong
}

func (largeShard) Compare(
	_ context.Context, _ *shard.Past, first, _ shard.Moment, _ func(first, second *engine.Engine) bool,
) (interlock.At, interlock.Index, error) {
	return interlock.At{}, first.Index, shard.ErrTooLarge
}

// trimmedShard is a shard with a journal that begins later.
type trimmedShard struct{ Shard }

func (t trimmedShard) First() interlock.Index { return 1000 }

func TestOpenAPIServesItsVersion(t *testing.T) {
	doc, err := openAPIDocument(`1.2.3-"quoted"`)
	if err != nil || !json.Valid(doc) || !bytes.Contains(doc, []byte(`"version": "1.2.3-\"quoted\""`)) {
		t.Fatalf("%v %.200s", err, doc)
	}
	again, err := openAPIDocument(`1.2.3-"quoted"`)
	if err != nil || &again[0] != &doc[0] {
		t.Errorf("another server of this version has a document of its own, error %v", err)
	}
}

func TestUndocumentedPathsAreUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for _, path := range []string{
			"/v1", "/v1/", "/v2/leases", "/v1/lease", "/v1/leases/", "/v1/leases//renew", "/v1/leases/x/y/z",
			"/v1/LEASES", "/v1%2Fkeys", "/healthz/", "//healthz", "/v1/../healthz", "/v1/keys"[:7], "/v1/fences/",
			"/debug/pprof/", "/favicon.ico",
		} {
			r := d.request("GET", "http://localhost/", "")
			u, err := r.URL.Parse("http://localhost/")
			if err != nil {
				t.Fatal(err)
			}
			r.URL = u
			r.URL.Path, r.URL.RawPath = path, path
			if strings.Contains(path, "%") {
				r.URL.Path = strings.ReplaceAll(path, "%2F", "/")
			}
			got := d.send(r)
			if got.status != 404 && got.status != 405 {
				t.Errorf("%s: %d %s", path, got.status, got.raw)
			}
		}
	})
}

// Every number in a query may be the least and the most that openapi.json allows, and nothing
// beyond.
func TestBoundsOfParameters(t *testing.T) {
	tried := 0
	d := newDoor(t)
	for _, c := range samples() {
		op, name, err := operationOf(d.request(c.method, c.path, ""))
		if err != nil {
			t.Fatal(err)
		}
		if op == nil {
			continue
		}
		for _, p := range op.Parameters {
			schema := p.Value.Schema.Value
			if p.Value.In != "query" || !schema.Type.Is("integer") {
				continue
			}
			path, given, _ := strings.Cut(c.path, "?")
			query, _ := url.ParseQuery(given)
			for _, other := range op.Parameters {
				if !other.Value.Required {
					query.Del(other.Value.Name)
				}
			}
			try := func(bound *float64, beyond int64) {
				if bound == nil {
					return
				}
				tried++
				for _, over := range []int64{0, beyond} {
					query.Set(p.Value.Name, strconv.FormatInt(int64(*bound)+over, 10))
					got := d.sample(c, path+"?"+query.Encode(), c.body)
					if refused := got.status == 400; refused != (over != 0) {
						t.Errorf("%s with %s: %d %s", name, query.Encode(), got.status, got.raw)
					}
				}
			}
			try(schema.Min, -1)
			try(schema.Max, 1)
		}
	}
	if tried < 10 {
		t.Errorf("only %d bounds were tried", tried)
	}
}
