package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/interlockdev/interlock"
)

// ttlMS is long enough that no lease of these tests ever expires.
const ttlMS = 3_600_000

// worker makes one call after the other. A call with an unknown outcome stays open and is the
// first one after the restart, under the same request id.
type worker struct {
	name   string
	site   *site
	ledger *ledger
	random *rand.Rand
	role   role
	open   *call
	calls  int
}

// role decides what a worker does next and what an answer means.
type role interface {
	next(w *worker) call
	took(w *worker, c call, a answer) error
	// settled reports whether the worker may stop here for a check.
	settled() bool
}

// step sends one call. unknown means that no answer came.
func (w *worker) step(ctx context.Context) (unknown bool, err error) {
	if w.open == nil {
		c := w.role.next(w)
		c.fenceAbove = w.ledger.fence()
		w.open = &c
	}
	a, err := w.site.do(ctx, *w.open)
	if err != nil {
		return true, nil
	}
	c := *w.open
	w.open = nil
	if err := w.role.took(w, c, a); err != nil {
		return false, fmt.Errorf("%s: %s %s: %w", w.name, c.method, c.path, err)
	}
	return false, nil
}

// run works until the server is gone.
func (w *worker) run(ctx context.Context) error {
	for {
		if unknown, err := w.step(ctx); unknown || err != nil {
			return err
		}
	}
}

// settle repeats what was open when the server died.
func (w *worker) settle(ctx context.Context) error {
	for w.open != nil || !w.role.settled() {
		unknown, err := w.step(ctx)
		if err != nil {
			return err
		}
		if unknown {
			return fmt.Errorf("%s: the server does not answer", w.name)
		}
	}
	return nil
}

// id makes a new request id.
func (w *worker) id() string {
	w.calls++
	return w.name + "-" + strconv.Itoa(w.calls)
}

func (w *worker) acquire(key, session string, waitMS int) call {
	body := map[string]any{
		"agent": w.name, "ttl_ms": ttlMS, "wait_ms": waitMS, "on_conflict": "wait",
		"claims": []any{map[string]any{"key": key}},
	}
	if session != "" {
		delete(body, "agent")
		body["session"] = session
		body["flow"] = key
	}
	return call{method: http.MethodPost, path: "/v1/leases", id: w.id(), body: body}
}

func (w *worker) release(lease, text string) call {
	return call{
		method: http.MethodPost, path: "/v1/leases/" + lease + "/release", id: w.id(),
		body: map[string]any{"outcome": "done", "note": text},
	}
}

func unexpected(a answer) error { return fmt.Errorf("unexpected answer: %s", a) }

// cycler takes one of a few contended keys, and releases it with a note.
type cycler struct {
	keys   []string
	key    string
	ticket string
	lease  string
	note   string
	fence  interlock.Fence // that was newest when the ticket was asked for
}

func (r *cycler) settled() bool { return true }

func (r *cycler) next(w *worker) call {
	switch {
	case r.lease != "":
		r.note = fmt.Sprintf("%s was here (%d)", w.name, w.calls)
		return w.release(r.lease, r.note)
	case r.ticket != "":
		return call{method: http.MethodGet, path: "/v1/tickets/" + r.ticket + "?wait_ms=100"}
	}
	r.key = r.keys[w.random.IntN(len(r.keys))]
	return w.acquire(r.key, "", w.random.IntN(2)*100)
}

func (r *cycler) took(w *worker, c call, a answer) error {
	switch {
	case r.lease != "" && a.Status == http.StatusOK:
		w.ledger.released(r.lease, r.note)
		r.lease = ""
		return nil
	case r.lease == "" && a.Status == http.StatusOK && a.Outcome == "granted":
		above := c.fenceAbove
		if r.ticket != "" {
			above = r.fence
		}
		r.ticket, r.lease = "", a.Lease.ID
		return w.ledger.granted(r.key, &a, above)
	case r.lease == "" && a.Status == http.StatusAccepted:
		if r.ticket == "" {
			r.ticket, r.fence = a.Ticket.ID, c.fenceAbove
		}
		return nil
	}
	return unexpected(a)
}

// keeper takes keys of its own, anonymously or under a session, and never releases them.
type keeper struct {
	withSession bool
	session     string
	key         string
	kept        int
	most        int
}

func (r *keeper) settled() bool { return true }

func (r *keeper) next(w *worker) call {
	if r.withSession && r.session == "" {
		return call{
			method: http.MethodPost, path: "/v1/sessions", id: w.id(), body: map[string]any{"agent": w.name, "ttl_ms": ttlMS},
		}
	}
	if r.kept == r.most {
		// Enough is kept. Reads continue, because a read that is answered is an acknowledgement
		// too.
		return call{method: http.MethodGet, path: "/v1/keys/" + r.key}
	}
	r.key = fmt.Sprintf("kept/%s/%d", w.name, r.kept)
	return w.acquire(r.key, r.session, 0)
}

func (r *keeper) took(w *worker, c call, a answer) error {
	switch {
	case c.path == "/v1/sessions" && a.Session.ID != "":
		r.session = a.Session.ID
		return nil
	case c.path == "/v1/leases" && a.Outcome == "granted":
		r.kept++
		return w.ledger.granted(r.key, &a, c.fenceAbove)
	case c.method == http.MethodGet && a.Status == http.StatusOK:
		return nil
	}
	return unexpected(a)
}

// liner builds a line at one key and serves it from the front. It alone uses the key, one call
// at a time, so it knows the exact order.
type liner struct {
	key     string
	lease   string
	note    string
	tickets []string
	fences  []interlock.Fence // newest when the ticket was asked for
	seen    int
}

// settled reports whether the key is held: then all waiters have a place and none has an offer.
func (r *liner) settled() bool { return r.lease != "" }

func (r *liner) next(w *worker) call {
	switch {
	case r.lease == "" && len(r.tickets) > 0:
		return call{method: http.MethodGet, path: "/v1/tickets/" + r.tickets[0] + "?wait_ms=1000"}
	case r.lease == "" || len(r.tickets) < 4 || len(r.tickets) < 12 && w.random.IntN(2) == 0:
		return w.acquire(r.key, "", 0)
	}
	r.note = fmt.Sprintf("served %d", w.calls)
	return w.release(r.lease, r.note)
}

func (r *liner) took(w *worker, c call, a answer) error {
	switch {
	case c.method == http.MethodGet && a.Outcome == "granted":
		above := r.fences[0]
		r.lease, r.tickets, r.fences = a.Lease.ID, r.tickets[1:], r.fences[1:]
		return w.ledger.granted(r.key, &a, above)
	case c.path == "/v1/leases" && a.Outcome == "granted" && r.lease == "":
		r.lease = a.Lease.ID
		return w.ledger.granted(r.key, &a, c.fenceAbove)
	case c.path == "/v1/leases" && a.Status == http.StatusAccepted && r.lease != "":
		r.tickets, r.fences = append(r.tickets, a.Ticket.ID), append(r.fences, c.fenceAbove)
		if a.Ticket.Position != len(r.tickets) {
			return fmt.Errorf("position %d, must be %d", a.Ticket.Position, len(r.tickets))
		}
		return nil
	case r.lease != "" && a.Status == http.StatusOK && c.path == "/v1/leases/"+r.lease+"/release":
		w.ledger.released(r.lease, r.note)
		r.lease = ""
		return nil
	}
	return unexpected(a)
}

// check asks for each place in the line.
func (r *liner) check(ctx context.Context, s *site) error {
	for i, ticket := range r.tickets {
		a, err := s.do(ctx, call{method: http.MethodGet, path: "/v1/tickets/" + ticket})
		if err != nil {
			return err
		}
		if a.Status != http.StatusAccepted || a.Ticket.Position != i+1 || a.Ticket.Length != len(r.tickets) {
			return fmt.Errorf(
				"ticket %d of %d at %s: %s, position %d of %d", i+1, len(r.tickets), r.key, a, a.Ticket.Position, a.Ticket.Length,
			)
		}
		r.seen++
	}
	return nil
}
