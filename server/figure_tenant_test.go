package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// Waits and holds are counted under the patterns of their keys, the organisation of a run and
// the claimant group, in their namespace.
func TestMetricsByNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("accounts", `{"pattern":"account:{id}"}`)
		d.pattern("seats", `{"pattern":"seat","capacity":2,"groups":[{"name":"batch","max":1}]}`)
		take := func(body string, headers ...string) string {
			t.Helper()
			return d.post("/v1/leases", body, headers...).want(200).str("lease.id")
		}
		release := func(id string, headers ...string) {
			t.Helper()
			d.post("/v1/leases/"+id+"/release", "", headers...).want(200)
		}
		one := take(`{"claims":[{"key":"account:1"}]}`)
		ticket := d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"account:1"}]}`).want(202).str("ticket.id")
		pass(7 * time.Second)
		release(one)
		d.delete("/v1/tickets/" + ticket)
		release(take(`{"claims":[{"key":"loose"},{"key":"account:2"},{"key":"account:3"}]}`))
		seat := take(`{"group":"batch","claims":[{"key":"seat","permits":1}]}`)
		run := d.post("/v1/runs", `{"org":"acme","workflow":"triage"}`).want(200).str("run.lease.id")
		other := take(`{"claims":[{"key":"account:1"}]}`, "Interlock-Namespace", "elsewhere")
		pass(5 * time.Second)
		release(seat)
		release(run)
		release(other, "Interlock-Namespace", "elsewhere")
		for name, want := range map[string]string{
			`interlock_pattern_wait_seconds_count{namespace="default",pattern="accounts"}`:         "3",
			`interlock_pattern_wait_seconds_sum{namespace="default",pattern="accounts"}`:           "7",
			`interlock_pattern_hold_seconds_sum{namespace="default",pattern="accounts"}`:           "7",
			`interlock_pattern_hold_seconds_bucket{namespace="default",pattern="accounts",le="1"}`: "2",
			`interlock_pattern_hold_seconds_sum{namespace="default",pattern="seats"}`:              "5",
			`interlock_pattern_hold_seconds_sum{namespace="elsewhere",pattern=""}`:                 "5",
			`interlock_pattern_hold_seconds_sum{namespace="elsewhere",pattern="accounts"}`:         "absent",
			`interlock_group_hold_seconds_sum{group="batch",namespace="default"}`:                  "5",
			`interlock_group_wait_seconds_count{group="batch",namespace="default"}`:                "1",
			`interlock_org_hold_seconds_sum{namespace="default",org="acme"}`:                       "5",
			`interlock_org_wait_seconds_count{namespace="default",org="acme"}`:                     "1",
			`interlock_org_wait_seconds_count{namespace="other",org="other"}`:                      "absent",
		} {
			if got := d.figure(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
}

// 10,000 namespaces and organisations make no more lines than there is room for, and the rest
// is counted as other.
func TestMetricsByNamespaceAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, room := range []int{0, 3} {
			d := newDoor(t)
			d.obs.LimitSeries(room)
			events := make([]string, 0, 10_000)
			for i := range cap(events) {
				events = append(events, fmt.Sprintf("tenant-%d", i))
			}
			for i, ns := range events[:100] {
				d.post("/v1/runs", fmt.Sprintf(`{"org":"org-%d"}`, i), "Interlock-Namespace", ns).want(200)
			}
			if room > 0 {
				for _, ns := range events {
					d.obs.figures.tenants.groups[byOrg].top.of(name{interlock.Namespace(ns), ns}, 1).wait.observe(0)
				}
			}
			text := d.get("/metrics").want(200).raw
			for _, label := range []string{"pattern", "org"} {
				got := strings.Count(text, "interlock_"+label+"_wait_seconds_count{")
				if want := min(room, 1) + room; got != want {
					t.Errorf("with room for %d there are %d series by %s, want %d", room, got, label, want)
				}
			}
		}
	})
}

// The figures by namespace name tenants: with credentials, the role metrics alone sees them.
func TestMetricsByNamespaceNeedTheRole(t *testing.T) {
	for _, c := range []struct {
		by   *interlock.Principal
		sees bool
	}{
		{nil, true},
		{&interlock.Principal{Roles: interlock.RoleMetrics}, true},
		{&interlock.Principal{Roles: interlock.AllRoles &^ interlock.RoleMetrics}, false},
	} {
		if got := seesTenants(c.by); got != c.sees {
			t.Errorf("%+v sees them: %v", c.by, got)
		}
	}
}
