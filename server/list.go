package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// requestFilter reads the parameters that listings of leases and of tickets have in common. Its
// listing is the mark of their cursors, with the state that the caller asks for.
func (c *call) requestFilter(kind, state string) (filter engine.RequestFilter, listing string, ok bool) {
	filter.Agent, filter.Session = c.query.Get("agent"), c.query.Get("session")
	filter.Principal = c.query.Get("principal")
	if filter.Prefix, ok = c.prefixParam(); !ok {
		return filter, "", false
	}
	if filter.Limit, ok = c.pageSize(); !ok {
		return filter, "", false
	}
	listing = fmt.Sprintf("%s %q %q %q %q %q", kind, filter.Prefix, filter.Agent, filter.Session, filter.Principal, state)
	return filter, listing, c.openPlace(listing, &filter.After)
}

// oneOf reads a parameter that is left out or has one of some values, and returns its index; -1 where
// it is left out. ok is false when the call was answered.
func (c *call) oneOf(name string, values ...string) (i int, ok bool) {
	text := c.query.Get(name)
	if text == "" {
		return -1, true
	}
	for i, v := range values {
		if v == text {
			return i, true
		}
	}
	last := len(values) - 1
	c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
		"parameter %s: want %s or %s, found %q", name, strings.Join(values[:last], ", "), values[last], clipped(text),
	))
	return -1, false
}

// listLeases is GET /v1/leases.
func (c *call) listLeases() {
	var names []string
	for l := interlock.Live; l <= interlock.Closed; l++ {
		names = append(names, l.String())
	}
	i, ok := c.oneOf("liveness", names...)
	if !ok {
		return
	}
	filter, listing, ok := c.requestFilter("leases", c.query.Get("liveness"))
	if !ok {
		return
	}
	list := engine.LeaseList{Namespace: c.namespace, Filter: filter, Liveness: interlock.Liveness(i + 1)}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("leases")
	for i := range list.Rows {
		writeListedLease(j, "", &list.Rows[i])
	}
	j.closeArray()
	if list.More {
		j.str("cursor", c.makePlace(listing, list.Next))
	}
	c.send(http.StatusOK, j, at)
}

// listTickets is GET /v1/tickets.
func (c *call) listTickets() {
	state, ok := c.oneOf("state", "waiting", "offered")
	if !ok {
		return
	}
	filter, listing, ok := c.requestFilter("tickets", c.query.Get("state"))
	if !ok {
		return
	}
	list := engine.TicketList{Namespace: c.namespace, Filter: filter, Waiting: state == 0, Offered: state == 1}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("tickets")
	for i := range list.Rows {
		writeListedTicket(j, "", &list.Rows[i])
	}
	j.closeArray()
	if list.More {
		j.str("cursor", c.makePlace(listing, list.Next))
	}
	c.send(http.StatusOK, j, at)
}

// listSessions is GET /v1/sessions.
func (c *call) listSessions() {
	state, ok := c.oneOf("state", "holding", "waiting")
	if !ok {
		return
	}
	limit, ok := c.pageSize()
	if !ok {
		return
	}
	list := engine.SessionList{
		Namespace: c.namespace, Agent: c.query.Get("agent"), Principal: c.query.Get("principal"), Holding: state == 0,
		Waiting: state == 1, Limit: limit,
	}
	listing := fmt.Sprintf("sessions %q %q %q", list.Agent, list.Principal, c.query.Get("state"))
	if !c.openPlace(listing, &list.After) {
		return
	}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("sessions")
	for i := range list.Rows {
		writeListedSession(j, "", &list.Rows[i])
	}
	j.closeArray()
	if list.More {
		j.str("cursor", c.makePlace(listing, list.Next))
	}
	c.send(http.StatusOK, j, at)
}
