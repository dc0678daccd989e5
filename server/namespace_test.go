package server

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
)

// TestDeleteNamespace: what lives in a namespace keeps it, unless forced; readers of its events,
// and its waiters, are notified.
func TestDeleteNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.put("/v1/namespace", `{"quota":{"leases":2}}`)
		lease := d.post("/v1/leases", `{"agent":"ann","claims":[{"key":"k"}]}`)
		lease.want(200)
		waiting := d.start(d.request(
			"POST", "/v1/leases", `{"agent":"ben","on_conflict":"wait","wait_ms":60000,"claims":[{"key":"k"}]}`,
		))
		synctest.Wait()
		reader := d.start(d.request("GET", "/v1/events?follow=true", ""))
		synctest.Wait()
		refused := d.delete("/v1/namespaces/default").want(409, string(interlock.CodeNamespaceInUse))
		if refused.says("detail", "1 lease, 1 waiter and settings of its own").at("retryable") != false {
			t.Error("to be repeated")
		}
		d.delete("/v1/namespaces/default?force=maybe").want(400, "invalid_request")
		d.delete("/v1/namespaces/default?force=true").want(200).is("outcome", "deleted")
		(<-waiting).want(410, "revoked")
		story := (<-reader).raw
		if !strings.Contains(story, `"event":"namespace_deleted"`) || !strings.Contains(story, `"event":"end"`) {
			t.Errorf("a reader of the events is told %s", story)
		}
		d.get("/v1/leases/"+lease.str("lease.id")).want(404, "unknown_lease")
		d.delete("/v1/namespaces/default").want(200)
		// It begins anew, without its settings.
		for i, key := range []string{"k", "l", "m"} {
			got := d.post("/v1/leases", `{"agent":"ann","claims":[{"key":"`+key+`"}]}`).want(200)
			if fence := got.str("lease.fence"); fence != strconv.Itoa(i+2) {
				t.Errorf("fence %s", fence)
			}
		}
	})
}
