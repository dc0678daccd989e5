package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// charactersPerToken is a careful estimate for JSON in English.
const charactersPerToken = 3.5

// An agent gets the essence of an answer in few tokens.
func TestBrief(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		const prefer = "Prefer"
		tokens := func(name, answer string, most int) {
			t.Helper()
			if n := int(float64(len(answer)) / charactersPerToken); n > most {
				t.Errorf("%s has about %d tokens, want at most %d: %s", name, n, most, answer)
			}
		}
		held := d.post(
			"/v1/leases", `{"agent":"billing-7","purpose":"apply late fee","claims":[{"key":"account:12345"}]}`,
			prefer, "respond-async, return=minimal",
		).want(200)
		tokens("a grant", held.raw, 60)
		if held.str("lease.fence") != "1" || held.header.Get("Preference-Applied") != "return=minimal" ||
			held.header.Get("Vary") != "Prefer" {
			t.Errorf("got %v %s", held.header, held.raw)
		}
		pass(3 * time.Second)
		lease := held.str("lease.id")
		queued := d.post(
			"/v1/leases?view=agent", `{"agent":"support-2","claims":[{"key":"account:12345"}],"on_conflict":"wait"}`,
		).want(202)
		if queued.str("ticket.id") == "" || queued.str("advice.action") != "wait" {
			t.Errorf("got %s", queued.raw)
		}

		d.send(d.request("PUT", "/v1/patterns/runs", `{"pattern":"org:{org}/runs","capacity":1}`)).want(200)
		d.send(d.request("PUT", "/v1/patterns/model", `{"pattern":"model:{name}","rate":1,"per_ms":60000,"burst":1}`)).want(200)
		d.send(d.request("PUT", "/v1/state/doc:1", `{"n":1}`, "Interlock-Agent", "ann")).want(200)
		d.post("/v1/leases", `{"agent":"a","claims":[{"key":"org:acme/runs","permits":1},{"key":"model:opus","permits":1}]}`).want(200)
		for _, x := range []struct{ path, body, code string }{
			{"/v1/leases", `{"agent":"third","claims":[{"key":"account:12345"}]}`, "held"},
			{"/v1/leases", `{"agent":"b","claims":[{"key":"org:acme/runs","permits":1}]}`, "at_capacity"},
			{"/v1/leases", `{"agent":"b","claims":[{"key":"model:opus","permits":1}]}`, "rate_limited"},
			{"/v1/leases", `{"claims":[{"key":"k","mode":"exclusve"}]}`, "invalid_mode"},
			{"/v1/leases/l_00000000000000000000000000000001/renew", `{}`, "unknown_lease"},
			{
				"/v1/commits", `{"reads":[{"key":"doc:1","absent":true}],"writes":[{"key":"doc:1","put":{"n":2}}]}`, "stale",
			},
			{"/v1/nothing", `{}`, "not_found"},
		} {
			brief := d.post(x.path, x.body, prefer, "return=minimal")
			if brief.str("code") != x.code || brief.str("detail") == "" || brief.str("advice.action") == "" {
				t.Errorf("%s: got %s", x.code, brief.raw)
			}
			tokens(x.code, brief.raw, 80)
			full := d.post(x.path, x.body)
			isPart(t, x.code, brief.raw, full.raw)
			if full.status != brief.status || full.header.Get("Preference-Applied") != "" {
				t.Errorf("%s: %d and %d, %v", x.code, full.status, brief.status, full.header)
			}
		}
		isPart(t, "renewal", d.post("/v1/leases/"+lease+"/renew", "{}", prefer, "return=minimal").want(200).raw,
			d.post("/v1/leases/"+lease+"/renew", "{}").want(200).raw)

		// Listings have no brief form, and there is no other view.
		if list := d.get("/v1/leases", prefer, "return=minimal").want(200); list.header.Get("Preference-Applied") != "" ||
			!strings.Contains(list.raw, "server_time") {
			t.Errorf("got %v %s", list.header, list.raw)
		}
		d.get("/v1/leases?view=human").want(400)
		d.get("/v1/leases?view=agent&view=agent").want(400)
	})
}

// isPart fails the test unless the brief form has nothing that the full one has not.
func isPart(t *testing.T, name, brief, full string) {
	t.Helper()
	var part, whole map[string]any
	if err := json.Unmarshal([]byte(brief), &part); err != nil {
		t.Fatalf("%s: %v in %s", name, err, brief)
	}
	if err := json.Unmarshal([]byte(full), &whole); err != nil {
		t.Fatalf("%s: %v in %s", name, err, full)
	}
	for member, value := range part {
		inner, isObject := value.(map[string]any)
		if !isObject {
			if !reflect.DeepEqual(value, whole[member]) {
				t.Errorf("%s: %s is %v, and %v in full", name, member, value, whole[member])
			}
			continue
		}
		outer, _ := whole[member].(map[string]any)
		for _, m := range slices.Sorted(maps.Keys(inner)) {
			if _, has := outer[m]; !has {
				t.Errorf("%s: the full form has no %s.%s", name, member, m)
			}
		}
	}
}

// The members that brief forms leave out are members of answers.
func TestBriefMembersExist(t *testing.T) {
	description, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var check func(within string, l leave)
	check = func(within string, l leave) {
		for _, name := range slices.Sorted(maps.Keys(l)) {
			if !strings.Contains(string(description), fmt.Sprintf("%q: {", name)) {
				t.Errorf("no answer has a member %s%s", within, name)
			}
			check(within+name+".", l[name])
		}
	}
	check("", leftOut)
}
