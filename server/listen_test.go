package server

import (
	"testing"
	"time"
)

// A call that waits in the name of a session keeps that alive, however short its ttl.
func TestWaitingCallKeepsItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.put("/v1/queues/idle", ``).want(200)
		d.post("/v1/leases", `{"agent":"ben","ttl_ms":600000,"claims":[{"key":"busy"}]}`).want(200)
		task := d.submit(lateFee)
		for what, call := range map[string]func(session string) (method, path, body string){
			"a ticket": func(session string) (string, string, string) {
				queued := d.post(
					"/v1/leases", `{"session":"`+session+`","claims":[{"key":"busy"}],"on_conflict":"wait","wait_ms":0}`,
				).want(202)
				return "GET", "/v1/tickets/" + queued.str("ticket.id") + "?wait_ms=55000", ""
			},
			"an acquire": func(session string) (string, string, string) {
				return "POST", "/v1/leases", `{"session":"` + session + `","claims":[{"key":"busy"}],"wait_ms":55000}`
			},
			"a pull": func(session string) (string, string, string) {
				return "POST", "/v1/queues/idle/pull", `{"session":"` + session + `","wait_ms":55000}`
			},
			"a task": func(session string) (string, string, string) {
				return "GET", "/v1/tasks/" + task + "?wait_ms=55000&session=" + session, ""
			},
		} {
			session := d.session("ann") // of 30 s
			mine := d.post("/v1/leases", `{"session":"`+session+`","claims":[{"key":"mine"}]}`).want(200).str("lease.id")
			method, path, body := call(session)
			pass(29 * time.Second)
			waiting := d.start(d.request(method, path, body))
			pass(50 * time.Second)
			if got := d.get("/v1/leases/" + mine).want(200); got.str("lease.state") != "held" {
				t.Errorf("%s: the lease is %s", what, got.raw)
			}
			if got := <-waiting; got.status >= 400 {
				t.Errorf("%s: %s", what, got.raw)
			}
			d.delete("/v1/sessions/" + session).want(200)
		}
	})
}
