package mcp

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

type lookArguments struct {
	Keys      []string `json:"keys"`
	Prefix    string   `json:"prefix"`
	Documents bool     `json:"documents"`
}

const (
	maxLook = 32
	// maxDocuments bounds the documents of an answer, in bytes.
	maxDocuments = 16 << 10
	listed       = 8
)

// look is the tool that shows holders and documents.
func look(v *visit) (*answer, error) {
	var in lookArguments
	if err := v.read(&in); err != nil {
		return nil, err
	}
	switch {
	case len(in.Keys) > 0 && in.Prefix != "":
		return nil, misuse("look takes keys or prefix, but not both.")
	case len(in.Keys) > maxLook:
		return nil, misusef("look takes at most %d keys: ask for the others in another call.", maxLook)
	case in.Prefix != "":
		return v.lookBelow(&in)
	case len(in.Keys) == 0:
		return v.lookAtOwn()
	case len(in.Keys) == 1:
		return v.lookAt(&in)
	}
	a := &answer{Outcome: "seen", quotes: true}
	room, shown := rowsShare, 0
	for _, key := range in.Keys {
		k, err := v.key(key)
		if err != nil {
			return nil, err
		}
		row := rowOf(k.Key, k.State, k.Holders, k.Length, fmt.Sprint(k.Version))
		if room -= weigh(row, rowsShare); room >= 0 && shown == len(a.Rows) {
			a.Rows = append(a.Rows, row)
		}
		shown++
	}
	a.Message = fmt.Sprintf("These are %d of your %d keys, in your order.", len(a.Rows), len(in.Keys))
	if len(a.Rows) < len(in.Keys) {
		a.Message += " Ask for the others in another call."
	}
	return v.withDocuments(a, &in)
}

func (v *visit) key(key string) (*api.KeyView, error) {
	var k api.KeyView
	_, err := v.do(api.Request{Method: http.MethodGet, Path: keyPath("keys", key)}, &k)
	return &k, err
}

// keyPath is the path of a key in a collection: each segment escaped, '/' between them.
func keyPath(collection, key string) string {
	segments := strings.Split(key, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return "/v1/" + collection + "/" + strings.Join(segments, "/")
}

// lookAt shows one key.
func (v *visit) lookAt(in *lookArguments) (*answer, error) {
	k, err := v.key(in.Keys[0])
	if err != nil {
		return nil, err
	}
	a := &answer{
		Outcome: string(k.State), Version: fmt.Sprint(k.Version), Holders: holdersOf(k.Holders), Notes: notesOf(k.Notes),
	}
	switch {
	case len(k.Holders) > 0:
		a.Message = isHeld(k.Key, k.Holders)
		if k.Length > 0 {
			a.Message += " " + waiting(k.Length) + " for it."
		}
		a.Message += " acquire puts you in its queue."
	case k.State == "free":
		a.Message = clip(string(k.Key), keyShare) + " is free: acquire takes it."
	default:
		a.Message = fmt.Sprintf("%s is offered to a waiter; %s for it. acquire puts you in its queue.",
			clip(string(k.Key), keyShare), waiting(k.Length))
	}
	return v.withDocuments(a, in)
}

// waiting counts the waiters of a key.
func waiting(n int) string {
	if n == 1 {
		return "1 agent waits"
	}
	return fmt.Sprintf("%d agents wait", n)
}

// rowOf is a key in one line.
func rowOf(key api.Key, state api.KeyState, holders []api.Holder, waiters int, version string) string {
	row := clip(string(key), keyShare) + ": " + string(state)
	if len(holders) > 0 {
		row = clip(string(key), keyShare) + ": held by " + quoted(holders[0].Agent) + " for " + span(holders[0].Held)
	}
	if waiters > 0 {
		row += fmt.Sprintf(", %d waiting", waiters)
	}
	if version != "" && version != "0" {
		row += ", version " + version
	}
	return row
}

// lookBelow shows the keys that begin so.
func (v *visit) lookBelow(in *lookArguments) (*answer, error) {
	var list api.KeyList
	_, err := v.do(api.Request{
		Method: http.MethodGet, Path: "/v1/keys", Query: url.Values{"prefix": {in.Prefix}, "limit": {fmt.Sprint(listed)}},
	}, &list)
	if err != nil {
		return nil, err
	}
	a := &answer{Outcome: "seen", quotes: len(list.Keys) > 0}
	room := rowsShare
	for _, k := range list.Keys {
		row := rowOf(k.Key, k.State, k.Holders, k.Length, "")
		if room -= weigh(row, rowsShare); room < 0 {
			break
		}
		a.Rows = append(a.Rows, row)
	}
	switch {
	case len(list.Keys) == 0:
		a.Message = "No key that begins so is held or waited for."
	case len(a.Rows) < len(list.Keys) || list.Cursor != "":
		a.Message = "These are the first keys in use that begin so; use a longer prefix for others."
	default:
		a.Message = "These are all keys in use that begin so."
	}
	return v.withDocuments(a, in)
}

// lookAtOwn shows the agent's own leases.
func (v *visit) lookAtOwn() (*answer, error) {
	a := &answer{Outcome: "seen"}
	if !v.keyed {
		a.Message = "This server cannot tell your calls from those of others, so it knows no leases of yours: keep their " +
			"ids. A person can give you a name in the settings of this server."
		return a, nil
	}
	work, err := v.agent.Work(v.ctx)
	if err != nil {
		return nil, err
	}
	leases, tickets := v.ownRows(work)
	room := rowsShare
	for _, row := range slices.Concat(leases, tickets) {
		if room -= weigh(row, rowsShare); room < 0 {
			break
		}
		a.Rows = append(a.Rows, row)
	}
	switch len(leases) {
	case 0:
		a.Message = "You hold no lease."
	case 1:
		a.Message = "You hold 1 lease. Release it when you need it no longer."
	default:
		a.Message = fmt.Sprintf("You hold %d leases. Release those that you need no longer.", len(leases))
	}
	if n := len(tickets); n > 0 {
		a.Message += fmt.Sprintf(" You wait with %d tickets.", n)
		if n == 1 {
			a.Message = strings.TrimSuffix(a.Message, "s.") + "."
		}
	}
	if len(a.Rows) < len(leases)+len(tickets) {
		a.Message += " The oldest are listed."
	}
	return a, nil
}

// ownRows are the leases and the tickets of a flow, a line each.
func (v *visit) ownRows(work *api.SessionWork) (leases, tickets []string) {
	for i := range work.Leases {
		switch l := &work.Leases[i]; {
		case l.Flow != v.flow:
		case v.agent.Follows(l.ID):
			tickets = append(tickets, turnRow(l.Claims, api.TicketOf(l.ID)))
		default:
			leases = append(leases, fmt.Sprintf(
				"%s: lease %s, for %s", clip(several(agent.KeysOf(l.Claims)), keyShare), l.ID, span(l.Held),
			))
		}
	}
	for i := range work.Tickets {
		if t := &work.Tickets[i]; t.Flow == v.flow && len(t.Claims) > 0 {
			if t.Offered {
				tickets = append(tickets, turnRow(t.Claims, t.ID))
				continue
			}
			tickets = append(tickets, fmt.Sprintf(
				"%s: ticket %s, queue position %d", clip(several(agent.KeysOf(t.Claims)), keyShare), t.ID, t.Position,
			))
		}
	}
	return leases, tickets
}

// turnRow is a ticket for a turn that has come.
func turnRow(claims []api.Claim, ticket api.TicketID) string {
	return fmt.Sprintf("%s: ticket %s, it is your turn", clip(several(agent.KeysOf(claims)), keyShare), ticket)
}

// withDocuments adds the documents that were asked for.
func (v *visit) withDocuments(a *answer, in *lookArguments) (*answer, error) {
	if !in.Documents {
		return a, nil
	}
	query := url.Values{"values": {"true"}}
	if in.Prefix != "" {
		query.Set("prefix", in.Prefix)
		query.Set("limit", fmt.Sprint(maxLook))
	} else {
		query["key"] = in.Keys
	}
	var list api.Documents
	if _, err := v.do(api.Request{Method: http.MethodGet, Path: "/v1/state", Query: query}, &list); err != nil {
		return nil, err
	}
	room := maxDocuments
	for _, d := range list.Documents {
		out := document{Key: string(d.Key), Version: fmt.Sprint(d.Version), Absent: d.Absent, TooLarge: d.Truncated}
		size := len(out.Key) + len(d.Value)
		if d.Text != nil {
			size += len(*d.Text)
		}
		if d.Base64 != nil {
			size += len(*d.Base64)
		}
		if room -= size; room < 0 {
			out.TooLarge = true
		} else {
			out.Value, out.Text, out.Base64 = d.Value, d.Text, d.Base64
		}
		if room < -2*maxDocuments {
			break
		}
		a.Documents = append(a.Documents, out)
		a.quotes = a.quotes || !d.Absent
	}
	return a, nil
}
