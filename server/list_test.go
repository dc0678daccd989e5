package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// Listings of leases, requests in line and sessions have filters and pages, and show no id.
func TestListLeasesTicketsAndSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		agent := d.session("billing-7")
		for i := range 3 {
			d.post("/v1/leases", fmt.Sprintf(
				`{"session":%q,"purpose":"late fee","claims":[`+
					`{"key":"account:%d"},{"key":"note:%d","mode":"shared"}]}`, agent, i, i,
			)).want(200)
		}
		d.acquire("support-2", "mail:1")
		other := d.session("support-2")
		d.post("/v1/leases", `{"session":"`+other+`","on_conflict":"wait","claims":[{"key":"account:1"}]}`).want(202)
		d.post("/v1/leases", `{"on_conflict":"wait","any":true,"claims":[{"key":"account:1"},{"key":"account:2"}]}`).want(202)
		d.post("/v1/waits", `{"session":"`+other+`","flow":"b","on":{"agent":"billing-7"},"wait_ms":0}`).want(202)
		pass(2 * time.Second)

		page := d.get("/v1/leases?limit=2").want(200).is("leases.0.agent", "billing-7").is("leases.0.liveness", "live")
		page.is("leases.0.claims.1.mode", "shared").is("leases.1.claims.0.key", "account:1").is(
			"leases.0.purpose", "late fee",
		)
		rest := d.get("/v1/leases?limit=2&cursor="+page.str("cursor")).want(200).is("leases.1.agent", "support-2")
		if rest.at("cursor") != nil || rest.at("leases.2") != nil || rest.str("leases.1.session") != "" {
			t.Errorf("the last page is %s", rest.raw)
		}
		if held := page.num("leases.0.held_ms"); held != 2000 {
			t.Errorf("it is held for %v ms", held)
		}
		name := page.str("leases.0.session")
		for query, want := range map[string]int{
			"": 4, "?prefix=note:": 3, "?prefix=account:2": 1, "?agent=support-2": 1, "?session=" + name: 3, "?liveness=live": 4,
			"?liveness=grace": 0, "?principal=ops": 0, "?agent=billing-7&prefix=mail": 0,
		} {
			if got := d.get("/v1/leases" + query).want(200).at("leases").([]any); len(got) != want {
				t.Errorf("%q lists %d leases, want %d", query, len(got), want)
			}
		}
		d.get("/v1/leases?liveness=dead").want(400, "invalid_request").says("detail", "suspect", "closed")
		d.get("/v1/leases?prefix=a&cursor="+page.str("cursor")).want(404, "not_found")

		tickets := d.get("/v1/tickets").want(200).is("tickets.0.agent", "support-2").is("tickets.0.claims.0.key", "account:1")
		tickets.has("tickets.0.position", 1).has("tickets.0.waited_ms", 2000).has("tickets.1.any", true)
		tickets.is("tickets.2.on.agent", "billing-7").has("tickets.2.position", 0)
		next := d.get("/v1/tickets?limit=1&cursor="+d.get("/v1/tickets?limit=1").str("cursor")).want(200).has(
			"tickets.0.any", true,
		)
		if len(d.get("/v1/tickets?state=waiting&prefix=account:2").at("tickets").([]any)) != 1 ||
			next.at("tickets.1") != nil {
			t.Error("the filters of tickets do not hold")
		}
		d.get("/v1/tickets?state=held").want(400, "invalid_request").says("detail", "waiting or offered")

		sessions := d.get("/v1/sessions").want(200).is("sessions.0.agent", "billing-7").has("sessions.0.leases", 3)
		sessions.is("sessions.0.holds.0.key", "account:0").has("sessions.0.open_ms", 2000).has("sessions.0.connected", false)
		sessions.is("sessions.0.session", name).has("sessions.1.waits", 2).is("sessions.1.waits_for.0.key", "account:1")
		d.get("/v1/sessions?state=holding").want(200).is("sessions.0.agent", "billing-7")
		d.get("/v1/sessions?state=waiting").want(200).is("sessions.0.agent", "support-2")
		d.get("/v1/sessions?limit=1&cursor="+d.get("/v1/sessions?limit=1").str("cursor")).want(200).is(
			"sessions.0.agent", "support-2",
		)
		for _, r := range []*reply{page, rest, tickets, sessions} {
			for _, secret := range []string{`"l_`, `"t_`, agent, other} {
				if strings.Contains(r.raw, secret) {
					t.Errorf("an id is shown: %s", r.raw)
				}
			}
		}
	})
}

// has checks a number or a truth value.
func (r *reply) has(path string, want any) *reply {
	r.Helper()
	if got := fmt.Sprint(r.at(path)); got != fmt.Sprint(want) {
		r.Fatalf("%s: %s is %s, want %v, in %s", r.what, path, got, want, r.raw)
	}
	return r
}

// With credentials the listings have the principal of each, and a caller of another namespace sees
// nothing of them.
func TestListingsNamePrincipals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, as := credentialed(
			t, interlock.Principal{Name: "ann", Roles: interlock.RoleAgent},
			interlock.Principal{Name: "ben", Roles: interlock.RoleViewer},
		)
		session := d.post("/v1/sessions", `{"agent":"a"}`, as["ann"]...).want(200).str("session.id")
		d.post("/v1/leases", `{"session":"`+session+`","claims":[{"key":"k"}]}`, as["ann"]...).want(200)
		d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"k"}]}`, as["ann"]...).want(202)
		for _, path := range []string{"leases", "tickets", "sessions"} {
			d.get("/v1/"+path+"?principal=ann", as["ben"]...).want(200).is(path+".0.principal", "ann")
			if got := d.get("/v1/"+path+"?principal=ben", as["ben"]...).want(200).at(path).([]any); len(got) != 0 {
				t.Errorf("%s of ben: %v", path, got)
			}
			d.get("/v1/"+path).want(401, "unauthenticated")
		}
	})
}
