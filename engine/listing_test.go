package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// scan has a survey look until it is done, while another namespace goes on, and returns how often it
// looked.
func (s *stage) scan(survey engine.Scan) (looks int) {
	s.Helper()
	for looks = 1; !survey.Look(s.e); looks++ {
		if looks > 10_000 {
			s.Fatalf("no end after %d looks", looks)
		}
		s.step(time.Second, s.acquire(engine.Head{Namespace: "other"}, interlock.Key(fmt.Sprint("key:", s.ids))))
	}
	return looks
}

// Pages of leases, tickets and sessions have each one once, in the order of their beginning, and each
// look is a bounded part of the work.
func TestListings(t *testing.T) {
	const agents, each = 40, 50
	s := newStage(t)
	ns := interlock.Namespace("large")
	for i := range agents {
		s.ids++
		h := engine.Head{Namespace: ns, Actor: fmt.Sprint("owner-", i%4)}
		s.step(0, &engine.OpenSession{Head: h, ID: counted(s.ids), Agent: fmt.Sprint("agent-", i%8), TTL: time.Hour})
		h.Session = counted(s.ids)
		for k := range each {
			s.step(time.Second, s.acquire(h, interlock.Key(fmt.Sprintf("held:%d/%d", i, k))))
		}
		wait := s.acquire(h, "held:0/0")
		wait.OnConflict = interlock.Wait
		s.step(time.Second, wait)
	}

	list := func(filter engine.RequestFilter) (rows []engine.LeaseRow) {
		t.Helper()
		for more := true; more; {
			l := engine.LeaseList{Namespace: ns, Filter: filter}
			if looks := s.scan(&l); looks < agents*each/512 {
				t.Errorf("%d leases were seen in %d looks", agents*each, looks)
			}
			rows, more, filter.After = append(rows, l.Rows...), l.More, l.Next
		}
		return rows
	}
	all := list(engine.RequestFilter{Limit: 700})
	if len(all) != agents*each {
		t.Errorf("%d leases are listed of %d", len(all), agents*each)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Request <= all[i-1].Request {
			t.Fatalf("lease %d is listed behind lease %d", all[i].Request, all[i-1].Request)
		}
	}
	for _, c := range []struct {
		filter engine.RequestFilter
		want   int
	}{
		{engine.RequestFilter{Agent: "agent-3"}, agents / 8 * each},
		{engine.RequestFilter{Principal: "owner-1", Limit: 1000}, agents / 4 * each},
		{engine.RequestFilter{Session: all[0].Session}, each},
		{engine.RequestFilter{Prefix: "held:1/"}, each},
		{engine.RequestFilter{Prefix: "held:1", Agent: "agent-2"}, 2 * each}, // 10 and 18
		{engine.RequestFilter{Agent: "none"}, 0},
	} {
		if rows := list(c.filter); len(rows) != c.want {
			t.Errorf("%+v: %d leases, want %d", c.filter, len(rows), c.want)
		}
	}

	tickets := engine.TicketList{Namespace: ns, Filter: engine.RequestFilter{Limit: 30}}
	s.scan(&tickets)
	next := engine.TicketList{Namespace: ns, Filter: engine.RequestFilter{After: tickets.Next}}
	s.scan(&next)
	if rows := append(tickets.Rows, next.Rows...); len(rows) != agents-1 || !tickets.More || next.More {
		t.Errorf("%d and %d tickets are listed of %d", len(tickets.Rows), len(next.Rows), agents-1)
	} else if last := rows[len(rows)-1]; last.Position != agents-1 || last.Agent != "agent-7" ||
		last.Claims[0].Key != "held:0/0" {
		t.Errorf("the last in line is %+v", last)
	}

	sessions := engine.SessionList{Namespace: ns, Agent: "agent-1", Limit: 3}
	s.scan(&sessions)
	rest := engine.SessionList{Namespace: ns, Agent: "agent-1", After: sessions.Next}
	s.scan(&rest)
	rows := append(sessions.Rows, rest.Rows...)
	if len(rows) != agents/8 || !sessions.More || rest.More {
		t.Fatalf("%d and %d sessions are listed of %d", len(sessions.Rows), len(rest.Rows), agents/8)
	}
	if row := rows[0]; row.Leases != each || row.Waits != 1 || len(row.Holds) != engine.MaxShownHolders ||
		row.Holds[0].Key != "held:1/0" || row.WaitsFor[0].Key != "held:0/0" || row.Principal != "owner-1" {
		t.Errorf("a session is %+v", row)
	}
	waiting := engine.SessionList{Namespace: ns, Waiting: true, Limit: 1000}
	if looks := s.scan(&waiting); len(waiting.Rows) != agents-1 || looks < agents*each/256 {
		t.Errorf("%d sessions wait, want %d; they were seen in %d looks", len(waiting.Rows), agents-1, looks)
	}
	holding := engine.SessionList{Namespace: ns, Holding: true, Limit: 1}
	if s.scan(&holding); len(holding.Rows) != 1 || holding.Rows[0].Open != time.Second {
		t.Errorf("the first session that holds is %+v", holding.Rows)
	}
}

// A request for any of several keys is one ticket and one wait, a declared wait names the party that
// it is for, and an offer stands among both leases and tickets.
func TestListingsOfRareRequests(t *testing.T) {
	s := newStage(t)
	ns := interlock.Namespace("default")
	holder, other := s.open(ns, time.Hour), s.open(ns, time.Hour)
	s.step(0, s.acquire(holder, "a"))
	s.step(0, s.acquire(holder, "b"))
	any := s.acquire(other, "a")
	any.Any, any.OnConflict = true, interlock.Wait
	any.Claims = append(any.Claims, interlock.Claim{Key: "b", Mode: interlock.Exclusive})
	s.step(time.Second, any)

	tickets := engine.TicketList{Namespace: ns, Waiting: true}
	s.scan(&tickets)
	if len(tickets.Rows) != 1 || !tickets.Rows[0].Any || len(tickets.Rows[0].Claims) != 2 ||
		tickets.Rows[0].Position != 1 {
		t.Errorf("tickets are %+v", tickets.Rows)
	}
	sessions := engine.SessionList{Namespace: ns}
	s.scan(&sessions)
	if rows := sessions.Rows; len(rows) != 2 || rows[0].Leases != 2 || rows[1].Waits != 1 || len(rows[1].WaitsFor) != 2 {
		t.Errorf("sessions are %+v", rows)
	}
}
