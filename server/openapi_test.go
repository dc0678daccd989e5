package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// spec is openapi.json, read once.
var spec = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIFile)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	for name, schema := range doc.Components.Schemas {
		schemaNames[schema.Value] = name
	}
	// The validator loses track of references within references, so they are
	// replaced by what they refer to.
	for _, schema := range doc.Components.Schemas {
		inline(schema)
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for _, answer := range op.Responses.Map() {
				for _, content := range answer.Value.Content {
					inline(content.Schema)
				}
			}
		}
	}
	return doc, nil
})

// schemaNames has the names of the schemas that have one.
var schemaNames = map[*openapi3.Schema]string{}

func inline(schema *openapi3.SchemaRef) {
	schema.Ref = ""
	for _, inner := range slices.Concat(schema.Value.OneOf, schema.Value.AllOf) {
		inline(inner)
	}
	for _, property := range schema.Value.Properties {
		inline(property)
	}
	if schema.Value.Items != nil {
		inline(schema.Value.Items)
	}
}

// sightings remembers what of openapi.json was seen.
type sightings struct {
	answers map[string]bool // "GET /v1/keys 200"
	fields  map[string]bool // "Lease.fence", of the named schemas
}

// operationOf finds what openapi.json says about a request, and its name.
func operationOf(r *http.Request) (*openapi3.Operation, string, error) {
	doc, err := spec()
	if err != nil {
		return nil, "", err
	}
	pattern, _ := matchPath(r.URL.EscapedPath())
	item := doc.Paths.Value(pattern)
	if item == nil {
		return nil, "", nil
	}
	return item.GetOperation(r.Method), r.Method + " " + pattern, nil
}

// compare says how an answer differs from what openapi.json says of it. seen may
// be nil.
func compare(r *http.Request, w *http.Response, body string, seen *sightings) error {
	op, name, err := operationOf(r)
	if err != nil {
		return err
	}
	if op == nil {
		if w.StatusCode != http.StatusNotFound && w.StatusCode != http.StatusMethodNotAllowed && w.StatusCode != http.StatusUnauthorized &&
			w.StatusCode != http.StatusForbidden {
			return fmt.Errorf("%s %s is not documented", r.Method, r.URL.Path)
		}
		return compareProblem(w, body, seen)
	}
	answer := op.Responses.Value(strconv.Itoa(w.StatusCode))
	if answer == nil {
		return fmt.Errorf("%s: status %d is not documented", name, w.StatusCode)
	}
	if seen != nil {
		seen.answers[name+" "+strconv.Itoa(w.StatusCode)] = true
	}
	kind, _, err := mime.ParseMediaType(w.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	content := answer.Value.Content[kind]
	if content == nil {
		return fmt.Errorf("%s %d: content type %s is not documented", name, w.StatusCode, kind)
	}
	for header := range w.Header {
		switch header {
		case "Content-Type", "Cache-Control", "X-Content-Type-Options", "Connection", "Content-Length":
		default:
			if !documentsHeader(answer.Value, header) && kind != "text/plain" {
				return fmt.Errorf("%s %d: header %s is not documented", name, w.StatusCode, header)
			}
		}
	}
	switch kind {
	case "application/json", "application/problem+json":
		return compareJSON(content.Schema, body, seen)
	case "application/x-ndjson":
		for line := range strings.Lines(body) {
			if err := compareJSON(content.Schema, line, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func documentsHeader(answer *openapi3.Response, name string) bool {
	for documented := range answer.Headers {
		if strings.EqualFold(documented, name) {
			return true
		}
	}
	return false
}

// compareProblem is for refusals of what no operation is.
func compareProblem(w *http.Response, body string, seen *sightings) error {
	doc, err := spec()
	if err != nil {
		return err
	}
	if kind := w.Header.Get("Content-Type"); kind != "application/problem+json" {
		return fmt.Errorf("content type %s", kind)
	}
	return compareJSON(doc.Components.Schemas["Problem"], body, seen)
}

func compareJSON(schema *openapi3.SchemaRef, body string, seen *sightings) error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return fmt.Errorf("%w in %q", err, body)
	}
	if err := schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		return err
	}
	if seen != nil {
		seen.walk(schema, "", value)
	}
	return nil
}

// walk marks the fields of named schemas that a valid value has. name is the
// nearest named schema and the path below it.
func (s *sightings) walk(schema *openapi3.SchemaRef, name string, value any) {
	if known, ok := schemaNames[schema.Value]; ok {
		name = known
	}
	for _, all := range schema.Value.AllOf {
		s.walk(all, name, value)
	}
	for _, one := range schema.Value.OneOf {
		if one.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()) == nil {
			s.walk(one, name, value)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for field, property := range schema.Value.Properties {
			if inner, ok := v[field]; ok {
				s.fields[name+"."+field] = true
				s.walk(property, name+"."+field, inner)
			}
		}
	case []any:
		for _, element := range v {
			if schema.Value.Items != nil {
				s.walk(schema.Value.Items, name+"[]", element)
			}
		}
	}
}

// documented lists every answer and every field of an answer that openapi.json
// has.
func documented() (*sightings, error) {
	doc, err := spec()
	if err != nil {
		return nil, err
	}
	all := &sightings{answers: map[string]bool{}, fields: map[string]bool{}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, answer := range op.Responses.Map() {
				all.answers[method+" "+path+" "+status] = true
				for _, content := range answer.Value.Content {
					all.collect(content.Schema, "")
				}
			}
		}
	}
	return all, nil
}

func (s *sightings) collect(schema *openapi3.SchemaRef, name string) {
	if known, ok := schemaNames[schema.Value]; ok {
		name = known
	}
	for _, inner := range slices.Concat(schema.Value.OneOf, schema.Value.AllOf) {
		s.collect(inner, name)
	}
	for field, property := range schema.Value.Properties {
		s.fields[name+"."+field] = true
		s.collect(property, name+"."+field)
	}
	if schema.Value.Items != nil {
		s.collect(schema.Value.Items, name+"[]")
	}
}

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
			var query []string
			for _, p := range op.Parameters {
				if p.Value.In == openapi3.ParameterInQuery {
					query = append(query, p.Value.Name)
				}
			}
			if !slices.Equal(slices.Sorted(slices.Values(query)), slices.Sorted(slices.Values(m.query))) {
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

func TestOpenAPIHasTheFieldsOfBodies(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string][]string{
		"AcquireRequest": acquireFields, "ClaimRequest": claimFields, "ConvertRequest": convertFields, "ArriveRequest": arriveFields,
		"ParkRequest": parkFields, "ResumeRequest": resumeFields, "DeclareRequest": declareFields,
		"ReleaseRequest": releaseFields, "RenewRequest": progressFields, "OpenSessionRequest": sessionFields,
		"CheckFenceRequest": fenceFields, "RevokeRequest": revokeFields,
		"PatternRequest": patternFields, "SettingsRequest": settingsFields, "Quota": quotaFields,
	} {
		documented := slices.Sorted(maps.Keys(doc.Components.Schemas[name].Value.Properties))
		if !slices.Equal(documented, slices.Sorted(slices.Values(fields))) {
			t.Errorf("%s: documented %v, the door knows %v", name, documented, fields)
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
	for code := range codes {
		have = append(have, string(code))
	}
	slices.Sort(documented)
	slices.Sort(have)
	if !slices.Equal(documented, have) {
		t.Errorf("documented %v\nhave %v", documented, have)
	}
}

// namesFrom lists what a function gives for 1, 2, 3, ... up to the first empty name.
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
	for name, c := range map[string]struct{ documented, have []any }{
		"modes":    {doc.Components.Schemas["Mode"].Value.Enum, namesFrom(func(i int) string { return interlock.Mode(i).String() })},
		"liveness": {property("Holder", "liveness").Enum, namesFrom(func(i int) string { return interlock.Liveness(i).String() })},
		"states":   {property("Lease", "state").Enum, namesFrom(func(i int) string { return interlock.LeaseState(i).String() })},
		"reasons":  {property("Event", "reason").Enum, namesFrom(func(i int) string { return engine.Reason(i).String() })},
		"events": {property("Event", "event").Enum, slices.DeleteFunc(namesFrom(func(i int) string { return engine.EventKind(i).String() }), func(name any) bool {
			return name == engine.EvAnswered.String()
		})},
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
		"aliases": {property("PatternRequest", "aliases").MaxItems, maxAliases},
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
		tourSessions(d)
		tourOperators(d)
		tourBarrier(d)
		tourParts(d)
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

// samples has a request for each operation that gets as far as the shard.
func samples() []struct{ method, path, body string } {
	const lease, ticket, session = "l_00000000000000000000000000000001", "t_00000000000000000000000000000001", "s_00000000000000000000000000000001"
	return []struct{ method, path, body string }{
		{"POST", "/v1/leases", `{"claims":[{"key":"a"}]}`},
		{"GET", "/v1/leases/" + lease, ""},
		{"POST", "/v1/leases/" + lease + "/renew", `{}`},
		{"POST", "/v1/leases/" + lease + "/release", `{}`},
		{"POST", "/v1/leases/" + lease + "/convert", `{"claims":[{"key":"a"}]}`},
		{"POST", "/v1/leases/" + lease + "/arrive", `{}`},
		{"POST", "/v1/leases/" + lease + "/park", `{}`},
		{"POST", "/v1/leases/" + lease + "/resume", `{}`},
		{"GET", "/v1/tickets/" + ticket, ""},
		{"DELETE", "/v1/tickets/" + ticket, ""},
		{"POST", "/v1/sessions", `{}`},
		{"DELETE", "/v1/sessions/" + session, ""},
		{"POST", "/v1/sessions/" + session + "/heartbeat", `{}`},
		{"GET", "/v1/keys", ""},
		{"GET", "/v1/keys/a/b", ""},
		{"GET", "/v1/waits", ""},
		{"POST", "/v1/waits", `{"on":{"agent":"support-2"}}`},
		{"GET", "/v1/why?key=a", ""},
		{"GET", "/v1/hot", ""},
		{"GET", "/v1/events", ""},
		{"POST", "/v1/fences/check", `{"key":"a","fence":"1"}`},
		{"POST", "/v1/revocations", `{"key":"a","fence":"1"}`},
		{"GET", "/v1/patterns", ""},
		{"GET", "/v1/patterns/org", ""},
		{"PUT", "/v1/patterns/org", `{"pattern":"org:{id}"}`},
		{"DELETE", "/v1/patterns/org", ""},
		{"GET", "/v1/namespace", ""},
		{"PUT", "/v1/namespace", `{}`},
		{"GET", "/healthz", ""},
		{"GET", "/readyz", ""},
		{"GET", "/metrics", ""},
		{"GET", "/openapi.json", ""},
	}
}

func tourLeases(d *door) {
	lease := d.post("/v1/leases", `{"agent":"billing-7","purpose":"apply late fee","max_hold_ms":60000,"claims":[{"key":"account:1"}]}`).want(200)
	id, fence := lease.str("lease.id"), lease.str("lease.fence")
	d.get("/v1/leases/"+id).want(200).is("lease.holder.agent", "billing-7")
	d.post("/v1/leases/"+id+"/renew", `{"progress":"1/2"}`).want(200)
	d.post("/v1/leases", `{"claims":[{"key":"account:1","mode":"shared"}]}`).want(409, "held").is("holders.0.agent", "billing-7")
	d.post("/v1/leases", `{"on_conflict":"skip","claims":[{"key":"account:1"}]}`).want(200).is("outcome", "skipped")
	ticket := d.post("/v1/leases", `{"agent":"support-1","wait_ms":1000,"claims":[{"key":"account:1"}]}`).want(202).str("ticket.id")
	d.get("/v1/tickets/" + ticket).want(202)
	d.post("/v1/fences/check", `{"key":"account:1","fence":"`+fence+`"}`).want(200).is("outcome", "valid")
	d.post("/v1/fences/check", `{"key":"account:1","fence":"99"}`).want(409, "fenced").is("conflict_kind", "fenced")
	d.post("/v1/revocations", `{"key":"account:1","fence":"99"}`).want(409, "fenced")
	d.post("/v1/leases/"+id+"/release", `{"outcome":"done","note":"charged"}`).want(200).is("outcome", "released")
	d.post("/v1/leases/"+id+"/release", ``).want(410, "released")
	d.get("/v1/leases/"+id).want(410, "released")
	d.post("/v1/leases/"+id+"/renew", ``).want(410, "released")
	next := d.get("/v1/tickets/" + ticket + "?wait_ms=1000").want(200)
	next.is("notes.0.text", "charged").is("advice.action", "re_read")
	d.post("/v1/revocations", `{"key":"account:1","fence":"`+next.str("lease.fence")+`","reason":"stuck"}`).want(200)
	d.get("/v1/tickets/"+ticket).want(410, "revoked")
	id = d.acquire("slow", "account:2")
	pass(interlock.DefaultTTL + 1)
	d.post("/v1/leases/"+id+"/renew", ``).want(409, "in_grace")
	d.post("/v1/sessions", `{"agent":"first"}`, "Idempotency-Key", "one").want(200)
	for _, call := range []struct{ path, body string }{
		{"/v1/leases", `{"claims":[{"key":"b"}]}`},
		{"/v1/sessions", `{"agent":"second"}`},
		{"/v1/leases/" + id + "/release", `{}`},
		{"/v1/revocations", `{"key":"a","fence":"1"}`},
	} {
		d.post(call.path, call.body, "Idempotency-Key", "one").want(422, "request_id_reused")
	}
	d.delete("/v1/tickets/"+ticket, "Idempotency-Key", "one").want(422, "request_id_reused")
	d.delete("/v1/tickets/"+ticket).want(200).is("outcome", "left")
	pass(interlock.DefaultGrace)
}

func tourLooking(d *door) {
	one, two := d.session("agent-one"), d.session("agent-two")
	for session, key := range map[string]string{one: "org:acme/x", two: "org:acme/y"} {
		d.post("/v1/sessions/"+session+"/heartbeat", `{"progress":{"step":3}}`).want(200)
		d.post("/v1/leases", `{"session":"`+session+`","purpose":"audit","claims":[{"key":"`+key+`"}]}`).want(200)
	}
	d.post("/v1/leases", `{"session":"`+one+`","on_conflict":"wait","purpose":"then y","claims":[{"key":"org:acme/y"}]}`).want(202)
	for range engine.MaxShownHolders + 1 {
		d.post("/v1/leases", `{"agent":"reader","claims":[{"key":"doc:1","mode":"shared"}]}`).want(200)
	}
	d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"doc:1"}]}`).want(202).num("more_holders")
	d.post("/v1/leases", `{"on_conflict":"skip","claims":[{"key":"doc:1"}]}`).want(200).num("more_holders")
	d.post("/v1/leases", `{"claims":[{"key":"doc:1"}]}`).want(409).num("more_holders")
	pass(1e9)
	d.get("/v1/keys/org:acme%2Fy").want(200).is("state", "held").is("line.0.agent", "agent-one")
	d.get("/v1/keys/account:1").want(200).is("state", "free").num("hold_time_ms")
	d.get("/v1/keys/doc:1").want(200).num("more_holders")
	d.get("/v1/keys/account:1").want(200)
	page := d.get("/v1/keys?limit=1&state=held").want(200).is("keys.0.key", "doc:1")
	page.num("keys.0.more_holders")
	d.get("/v1/keys?limit=1&state=held&cursor="+page.str("cursor")).want(200).is("keys.0.key", "org:acme/x")
	d.get("/v1/keys?cursor="+page.str("cursor")).want(404, "not_found")
	d.get("/v1/waits").want(200).is("edges.0.waiter.agent", "agent-one")
	d.get("/v1/why?key=org:acme/y").want(200).is("chain.0.does", "holds")
	d.get("/v1/why?agent=agent-one").want(200).is("chain.1.agent", "agent-two")
	d.get("/v1/hot").want(200)
	// The cycle closes: the younger of two equals is the victim.
	victim := d.post("/v1/leases", `{"session":"`+two+`","wait_ms":1000,"claims":[{"key":"org:acme/x"}]}`).want(409, "deadlock")
	victim.says("advice.message", "waits for org:acme").says("cycle.0.key", "org:acme")
	// Another one, which an agent of higher priority closes: the victim learns of it
	// when it asks after its ticket.
	three, four := d.session("agent-three"), d.session("agent-four")
	for session, key := range map[string]string{three: "org:acme/3", four: "org:acme/4"} {
		d.post("/v1/leases", `{"session":"`+session+`","claims":[{"key":"`+key+`"}]}`).want(200)
	}
	ticket := d.post("/v1/leases", `{"session":"`+three+`","on_conflict":"wait","claims":[{"key":"org:acme/4"}]}`).want(202).str("ticket.id")
	d.post("/v1/leases", `{"session":"`+four+`","priority":1,"on_conflict":"wait","claims":[{"key":"org:acme/3"}]}`).want(202)
	d.get("/v1/tickets/"+ticket).want(409, "deadlock")
}

func tourSessions(d *door) {
	s := d.session("worker")
	l := d.post("/v1/leases", `{"session":"`+s+`","ttl_ms":2000,"grace_ms":0,"claims":[{"key":"job:1"}]}`).want(200)
	d.post("/v1/leases", `{"session":"`+s+`","max_hold_ms":10000,"claims":[{"key":"job:2"}]}`).want(200).num("lease.max_hold_in_ms")
	d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"job:1"}]}`).want(200).is("lease.fence", l.str("lease.fence"))
	pass(7 * 1e9)
	beat := d.post("/v1/sessions/"+s+"/heartbeat", `{"progress":"half"}`).want(200)
	beat.is("losses.0.code", "expired").is("warnings.0.lease.state", "soft").says("warnings.0.advice.message", "job:2")
	d.delete("/v1/sessions/"+s).want(200).is("outcome", "closed")
	d.post("/v1/sessions/"+s+"/heartbeat", ``).want(410, "session_ended")
	d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"job:1"}]}`).want(410, "session_ended")
	gone := d.session("gone")
	pass(2 * interlock.DefaultTTL)
	d.delete("/v1/sessions/"+gone).want(410, "session_ended")
	unknown := "_00000000000000000000000000000001"
	d.get("/v1/leases/l"+unknown).want(404, "unknown_lease")
	d.post("/v1/leases/l"+unknown+"/renew", ``).want(404, "unknown_lease")
	d.post("/v1/leases/l"+unknown+"/release", ``).want(404, "unknown_lease")
	d.get("/v1/tickets/t"+unknown).want(404, "unknown_ticket")
	d.delete("/v1/tickets/t"+unknown).want(404, "unknown_ticket")
	d.post("/v1/sessions/s"+unknown+"/heartbeat", ``).want(404, "unknown_session")
	d.delete("/v1/sessions/s"+unknown).want(404, "unknown_session")
	d.post("/v1/leases", `{"session":"s`+unknown+`","claims":[{"key":"a"}]}`).want(404, "unknown_session")
}

func tourEvents(d *door) {
	d.post("/v1/leases", `{"claims":[{"key":"with:everything"}],"agent":"a","flow":"f","purpose":"p","priority":3,"max_hold_ms":5000}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").want(200)
	if lines := strings.Count(d.get("/v1/events").want(200).raw, "\n"); lines < 20 {
		d.Fatalf("%d events", lines)
	}
	d.get("/v1/events?follow=false", "Accept", "text/event-stream").want(200)
	// A followed stream is quiet for a while, then the server goes away.
	r := d.request("GET", "/v1/events?follow=true", "")
	stream := d.start(r)
	pass(keepAliveEvery + 1)
	d.server.Drain()
	got := <-stream
	if !strings.Contains(got.raw, `"keep_alive"`) || !strings.HasSuffix(got.raw, "\n") || !strings.Contains(got.raw, `"code":"shutting_down"`) {
		d.Fatalf("a drained stream ends with %q", got.raw[max(0, len(got.raw)-200):])
	}
	d.get("/v1/events").want(503, "shutting_down")
	d.get("/readyz").want(503, "shutting_down")
	d.get("/healthz").want(200)
}

func tourBadRequests(d *door) {
	for _, c := range samples() {
		sep := "?"
		if strings.Contains(c.path, "?") {
			sep = "&"
		}
		d.send(d.request(c.method, c.path+sep+"nonsense=1", c.body)).want(400, "invalid_request").says("detail", "nonsense")
		d.send(d.request(c.method, c.path, c.body, "Host", "evil.example")).want(403, "foreign_host")
		if c.method == "POST" || c.method == "PUT" {
			d.send(d.request(c.method, c.path, strings.Repeat(" ", interlock.MaxBodyBytes+1))).want(413, "body_too_large")
			r := d.request(c.method, c.path, c.body)
			r.Header.Set("Content-Type", "text/plain")
			d.send(r).want(415, "invalid_request")
			d.send(d.request(c.method, c.path, `{"surprise":1}`)).want(400, "invalid_request").says("detail", "surprise")
		}
	}
}

// tourFaults replaces the shard by one that fails in each way.
func tourFaults(d *door) {
	healthy := d.server.shard
	defer func() { d.server.shard = healthy }()
	every := func(err error, eff *engine.Effect, status int, code interlock.Code, only ...string) {
		d.server.shard = faulty{healthy, err, eff}
		for _, c := range samples() {
			if len(only) > 0 && !slices.Contains(only, c.method+" "+c.path) {
				continue
			}
			switch c.path {
			case "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/events":
				continue
			}
			d.send(d.request(c.method, c.path, c.body)).want(status, string(code))
		}
	}
	every(&interlock.Error{Code: interlock.CodeNotOwner, Message: "gone"}, nil, 503, interlock.CodeNotOwner)
	every(errors.New("disk on fire"), nil, 500, interlock.CodeInternal)
	every(&interlock.Error{Code: interlock.CodeQuota, Message: "too many requests a second"}, nil, 429, interlock.CodeQuota)
	tourRefusals(d, healthy)
	tourEffects(d, healthy)

	d.server.shard = faulty{healthy, &interlock.Error{Code: interlock.CodeNotOwner, Message: "gone"}, nil}
	d.get("/healthz").want(503, "not_owner")
	d.get("/readyz").want(503, "not_owner")
	d.server.shard = healthy
	d.get("/healthz").want(200)
	d.get("/readyz").want(200)
	d.get("/metrics").want(200)
	d.get("/openapi.json").want(200)
	d.server.shard = trimmed{healthy}
	d.get("/v1/events?from=2").want(410, "history_trimmed")
	d.server.shard = healthy
	for range d.server.streams.max {
		if leave, ok := d.server.streams.enter(interlock.DefaultNamespace); !ok {
			d.Fatal("no place for a stream")
		} else {
			defer leave()
		}
	}
	d.get("/v1/events").want(429, "too_many_streams")
}

func tourCredentials(d *door) {
	bearer := "Bearer " + d.reopenWithCredentials()
	d.post("/v1/sessions", `{}`, "Authorization", bearer).want(200)
	if events := d.get("/v1/events", "Authorization", bearer).want(200).raw; !strings.Contains(events, `"actor":"billing-swarm"`) {
		d.Fatalf("no actor in %s", events)
	}
	for _, c := range samples() {
		switch c.path {
		case "/healthz", "/readyz", "/openapi.json":
			continue
		}
		d.send(d.request(c.method, c.path, c.body)).want(401, "unauthenticated")
	}
}

// faulty is a shard whose answers are all an error, or all an effect.
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
func (f faulty) Submit(...engine.Command) error { return f.err }
func (f faulty) Read(context.Context, interlock.Namespace, func(*engine.Engine, engine.Time)) (interlock.At, error) {
	return interlock.At{}, f.err
}
func (f faulty) Failed() <-chan struct{} { return closedChannel }
func (f faulty) Err() error              { return f.err }

var closedChannel = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// trimmed is a shard whose journal begins later.
type trimmed struct{ Shard }

func (t trimmed) First() interlock.Index { return 1000 }

func TestOpenAPIServesItsVersion(t *testing.T) {
	doc, err := openAPIDocument(`1.2.3-"quoted"`)
	if err != nil || !json.Valid(doc) || !bytes.Contains(doc, []byte(`"version": "1.2.3-\"quoted\""`)) {
		t.Fatalf("%v %.200s", err, doc)
	}
}

func TestUndocumentedPathsAreUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for _, path := range []string{
			"/", "/v1", "/v1/", "/v2/leases", "/v1/lease", "/v1/leases/", "/v1/leases//renew", "/v1/leases/x/y/z",
			"/v1/LEASES", "/v1%2Fkeys", "/healthz/", "//healthz", "/v1/../healthz", "/v1/keys"[:7], "/v1/fences/", "/debug/pprof/", "/favicon.ico",
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
