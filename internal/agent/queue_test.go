package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/api"
)

// A ticket is found again after a restart of the door, with what the API lists of it: other keys, flows and forms have
// tickets of their own, and no place is left over.
func TestTicketOutlivesTheDoor(t *testing.T) {
	inBubble(t, func(r *rig) {
		ask := func(key, flow, purpose string) *Reply {
			t.Helper()
			reply, err := r.caller(key).Acquire(r.Context(), api.AcquireRequest{
				Claims: claims("file:b", "file:a"), Flow: flow, Purpose: purpose, OnConflict: "wait",
				TTL: (5 * time.Minute).Milliseconds(),
			}, "")
			if err != nil || reply.Refused != nil {
				r.Fatalf("%s: %v, %v", key, reply.Refused, err)
			}
			return reply
		}
		held := ask("ann", "", "").Granted
		tickets := map[string]api.TicketID{}
		for _, one := range []struct{ key, flow, purpose string }{
			{"ben", "", "split the \"login\" page"}, {"ben", "sub", ""}, {"cat", "", ""},
		} {
			tickets[one.key+one.flow] = ask(one.key, one.flow, one.purpose).Queued.Ticket.ID
		}
		r.queued(r.caller("cat"), "", "file:a") // without a ttl, so the door asks for it in another form
		r.close()
		r.open()
		for name, ticket := range tickets {
			if got := ask(name[:3], name[3:], "another purpose").Queued; got == nil || got.Ticket.ID != ticket {
				r.Errorf("%s: the ticket is %+v, want %s", name, got, ticket)
			}
		}
		answer, err := r.caller("ann").Do(r.Context(), api.Request{Method: "GET", Path: "/v1/tickets"})
		if err != nil {
			r.Fatal(err)
		}
		var list api.TicketList
		if err := json.Unmarshal(answer.Body, &list); err != nil || len(list.Tickets) != len(tickets)+1 {
			r.Errorf("there are %d tickets (%v): %s", len(list.Tickets), err, answer.Body)
		}
		r.release(r.caller("ann"), held)
		pass(time.Second)
		if news := r.caller("ben").News(""); len(news) != 1 || news[0].Ticket != tickets["ben"] {
			r.Errorf("the news are %+v", news)
		}
	})
}

// After the end of a ticket the same request has another one.
func TestTicketAfterTicket(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.caller("ann"), r.caller("ben")
		r.granted(ann, "", "file:a")
		seen := map[api.TicketID]bool{}
		for range 5 {
			ticket := r.queued(ben, "", "file:a").Ticket.ID
			if seen[ticket] {
				r.Errorf("ticket %s is over", ticket)
			}
			seen[ticket] = true
			if again := r.queued(ben, "", "file:a").Ticket.ID; again != ticket {
				r.Errorf("asking again has ticket %s, want %s", again, ticket)
			}
			if err := ben.Leave(r.Context(), ticket); err != nil {
				r.Fatal(err)
			}
		}
	})
}
