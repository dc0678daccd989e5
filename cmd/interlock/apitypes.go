package main

import (
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// The words of the HTTP/JSON door, as far as the commands show them. Fields that a
// later server adds are passed over.

type at struct {
	Shard int             `json:"shard"`
	Epoch interlock.Epoch `json:"epoch,string"`
	Index interlock.Index `json:"index,string"`
}

func (a at) word() interlock.At { return interlock.At{Shard: a.Shard, Epoch: a.Epoch, Index: a.Index} }

type advice struct {
	Action     interlock.Action `json:"action"`
	RetryAfter int64            `json:"retry_after_ms"`
	Message    string           `json:"message"`
}

func (a advice) word() interlock.Advice {
	return interlock.Advice{Action: a.Action, RetryAfter: ms(a.RetryAfter), Message: a.Message}
}

type party struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Flow    string `json:"flow"`
	Task    string `json:"task,omitempty"` // which is in line; Agent is its submitter
}

// name is the name of a party in a table: the agent, or what else there is.
func (p party) name() string {
	if name := clean(p.Agent); name != "" {
		return name
	}
	if p.Session != "" {
		return "session " + clean(p.Session)
	}
	return "(anonymous)"
}

// short is the name, or the task in line.
func (p party) short() string {
	if p.Task != "" {
		return "task " + clean(p.Task)
	}
	return p.name()
}

// full adds the flow, and the session, which tells agents of one name apart.
func (p party) full() string {
	name := p.name()
	switch {
	case p.Task != "":
		return "task " + clean(p.Task) + " of " + name
	case p.Session != "" && p.Flow != "" && p.Agent != "":
		return name + " (" + clean(p.Session) + ", " + clean(p.Flow) + ")"
	case p.Session != "" && p.Agent != "":
		return name + " (" + clean(p.Session) + ")"
	}
	return name
}

type holder struct {
	party
	Purpose string        `json:"purpose"`
	Key     interlock.Key `json:"key"`
	Mode    string        `json:"mode"`
	amount
	Fence        interlock.Fence `json:"fence,string"`
	Liveness     string          `json:"liveness"`
	HeartbeatAge int64           `json:"heartbeat_age_ms"`
	Held         int64           `json:"held_ms"`
	ExpiresIn    int64           `json:"expires_in_ms"`
	Progress     string          `json:"progress"`
	EndedBy      string          `json:"ended_by,omitempty"`
	Yield        *yieldRequest   `json:"yield,omitempty"`
}

func (h *holder) word() interlock.Holder {
	mode, _ := interlock.ParseMode(h.Mode)
	w := interlock.Holder{
		Agent: h.Agent, Session: h.Session, Flow: h.Flow, Purpose: h.Purpose, Key: h.Key, Mode: mode, Count: h.number(),
		Fence:        h.Fence,
		HeartbeatAge: ms(h.HeartbeatAge), Held: ms(h.Held), ExpiresIn: ms(h.ExpiresIn), Progress: h.Progress,
		EndedBy: h.EndedBy,
	}
	if y := h.Yield; y != nil {
		w.Yield = &interlock.Yield{
			Agent: y.Agent, Session: y.Session, Flow: y.Flow, Purpose: y.Purpose, Priority: y.Priority, Since: ms(y.Since),
			Revoked: y.Revoked,
		}
	}
	for l := interlock.Live; l.String() != ""; l++ {
		if l.String() == h.Liveness {
			w.Liveness = l
		}
	}
	return w
}

// holderOf is the other way round.
func holderOf(w *interlock.Holder) holder {
	h := holder{
		party: party{Agent: w.Agent, Session: w.Session, Flow: w.Flow}, Purpose: w.Purpose, Key: w.Key, Mode: w.Mode.String(),
		amount: amountOf(w.Mode, w.Count), Fence: w.Fence,
		Liveness: w.Liveness.String(), HeartbeatAge: w.HeartbeatAge.Milliseconds(), Held: w.Held.Milliseconds(),
		ExpiresIn: w.ExpiresIn.Milliseconds(), Progress: w.Progress, EndedBy: w.EndedBy,
	}
	if w.Yield != nil {
		h.Yield = yieldingOf(w.Yield)
	}
	return h
}

// line is a holder in half a sentence: "billing-7 (held for 12s, live): apply late
// fee".
func (h *holder) line() string {
	text := h.name() + " (held for " + short(ms(h.Held)) + ", " + orDash(clean(h.Liveness)) + ")"
	if purpose := clean(h.Purpose); purpose != "" {
		text += ": " + purpose
	}
	return text
}

type cycleStep struct {
	party
	Key    interlock.Key `json:"key"`
	Mode   string        `json:"mode"`
	Victim bool          `json:"victim"`
	Next   string        `json:"next"`
}

func (c *cycleStep) word() interlock.CycleStep {
	mode, _ := interlock.ParseMode(c.Mode)
	w := interlock.CycleStep{Agent: c.Agent, Session: c.Session, Flow: c.Flow, Key: c.Key, Mode: mode, Victim: c.Victim}
	for n := interlock.Holds; n.String() != ""; n++ {
		if n.String() == c.Next {
			w.Next = n
		}
	}
	return w
}

type lease struct {
	ID         string          `json:"id"`
	Fence      interlock.Fence `json:"fence,string"`
	Claims     []claim         `json:"claims"`
	Holder     party           `json:"holder"`
	Purpose    string          `json:"purpose"`
	TTL        int64           `json:"ttl_ms"`
	Grace      int64           `json:"grace_ms"`
	ExpiresIn  int64           `json:"expires_in_ms"`
	MaxHoldIn  int64           `json:"max_hold_in_ms"`
	StallIn    int64           `json:"stall_in_ms"`
	LockDelay  int64           `json:"lock_delay_ms"`
	Group      string          `json:"group"`
	State      string          `json:"state"`
	EndedBy    string          `json:"ended_by"`
	Moved      []interlock.Key `json:"moved"`
	Yield      *yieldRequest   `json:"yield"`
	Parking    *api.Parking    `json:"parking"`
	Decision   *api.Decision   `json:"decision"`
	Generation uint64          `json:"generation"`
	Parts      []api.HeldPart  `json:"parts"`
}

// yieldRequest is a request to a holder to release its keys.
type yieldRequest struct {
	party
	Purpose  string `json:"purpose"`
	Priority int    `json:"priority"`
	Since    int64  `json:"since_ms"`
	Revoked  bool   `json:"revoked"`
}

func yieldingOf(y *interlock.Yield) *yieldRequest {
	return &yieldRequest{
		party{Agent: y.Agent, Session: y.Session, Flow: y.Flow}, y.Purpose, y.Priority, y.Since.Milliseconds(), y.Revoked,
	}
}

// text is the request as its holder should read it; what names the keys.
func (y *yieldRequest) text(what string) string {
	text := y.name() + " asks you to yield " + what
	if y.Revoked {
		text = y.name() + " has asked for " + what + ", and it is being taken from you: finish now"
	}
	if purpose := clean(y.Purpose); purpose != "" {
		text += ": " + strconv.Quote(purpose)
	}
	return text
}

// told returns the request as others should read it; of names the asked holder.
func (y *yieldRequest) told(holder string) string {
	text := y.name() + " asked " + holder + " to yield " + short(ms(y.Since)) + " ago"
	if y.Revoked {
		text = y.name() + " preempted " + holder + " " + short(ms(y.Since)) + " ago"
	}
	if purpose := clean(y.Purpose); purpose != "" {
		text += ": " + strconv.Quote(purpose)
	}
	return text
}

// what are the keys of a lease.
func (l *lease) what() string {
	keys := make([]string, len(l.Claims))
	for i, c := range l.Claims {
		keys[i] = clean(string(c.Key))
	}
	return strings.Join(keys, ", ")
}

// parkedLease is a parked lease as others see it.
type parkedLease struct {
	party
	Claims  []claim         `json:"claims"`
	Fence   interlock.Fence `json:"fence,string"`
	Parking api.Parking     `json:"parking"`
}

// decisionText is a decision in half a sentence, or nothing.
func decisionText(d *api.Decision) string {
	if d == nil {
		return ""
	}
	return prose.Verdict(d.Verdict, d.Principal, d.By, d.Reason)
}

// leaseQuestion is the question to a person about a parked lease.
type leaseQuestion struct {
	Fence     string        `json:"fence"`
	Question  string        `json:"question"`
	Agent     string        `json:"agent"`
	Principal string        `json:"principal"`
	Purpose   string        `json:"purpose"`
	Claims    []claim       `json:"claims"`
	Asked     int64         `json:"asked_ms"`
	Left      int64         `json:"left_ms"`
	Keys      string        `json:"keys"`
	Decision  *api.Decision `json:"decision"`
}

// leaseAnswer is the result of a request for a lease.
type leaseAnswer struct {
	Outcome  string     `json:"outcome"`
	Lease    lease      `json:"lease"`
	Changed  bool       `json:"changed"`
	Notes    []api.Note `json:"notes"`
	Packet   packet     `json:"packet"`
	Ticket   api.Ticket `json:"ticket"`
	Key      string     `json:"key"`
	Holders  []holder   `json:"holders"`
	Advice   advice     `json:"advice"`
	Warnings []string   `json:"warnings"`

	Documents []document        `json:"documents"` // if they were asked for
	AsOf      interlock.Version `json:"as_of,string"`
}

// packet describes the changes, in words that are ready for a prompt.
type packet struct {
	Message string `json:"message"`
}

type waiter struct {
	party
	Purpose string `json:"purpose"`
	Mode    string `json:"mode"`
	amount
	Priority int   `json:"priority"`
	Position int   `json:"position"`
	Waited   int64 `json:"waited_ms"`
	ETA      int64 `json:"eta_ms"`
	Offered  bool  `json:"offered"`
}

type keyAnswer struct {
	Key        interlock.Key   `json:"key"`
	State      string          `json:"state"`
	Holders    []holder        `json:"holders"`
	More       int             `json:"more_holders"`
	Line       []waiter        `json:"line"`
	Length     int             `json:"length"`
	FenceFloor interlock.Fence `json:"fence_floor,string"`
	Notes      []api.Note      `json:"notes"`
	HoldTime   int64           `json:"hold_time_ms"`
	Pattern    string          `json:"pattern"`
	Capacity   *capacity       `json:"capacity"`
	Generation uint64          `json:"generation"`
	Broken     bool            `json:"broken"`
	Part       *struct {
		Resource string        `json:"resource"`
		Parts    int           `json:"parts"`
		Key      interlock.Key `json:"key"`
		Holder   *holder       `json:"holder"`
	} `json:"part"`
}

// capacity is how full a key with permits or tokens is.
type capacity struct {
	Permits   uint32 `json:"permits"`
	Used      uint32 `json:"used"`
	Tokens    uint32 `json:"tokens"`
	Available uint32 `json:"available"`
	Refill    int64  `json:"refill_ms"`
	Groups    []struct {
		Name string `json:"name"`
		Used uint32 `json:"used"`
		Min  uint32 `json:"min"`
		Max  uint32 `json:"max"`
	} `json:"groups"`
}

// word is nil for a key that has no capacity.
func (c *capacity) word() *interlock.Capacity {
	if c == nil {
		return nil
	}
	w := &interlock.Capacity{
		Permits: c.Permits, Used: c.Used, Tokens: c.Tokens, Available: c.Available, Refill: ms(c.Refill),
	}
	for _, g := range c.Groups {
		w.Groups = append(
			w.Groups, interlock.GroupUse{Group: interlock.Group{Name: g.Name, Min: g.Min, Max: g.Max}, Used: g.Used},
		)
	}
	return w
}

// text is a capacity in half a sentence, "" for none.
func (c *capacity) text() string {
	if c == nil {
		return ""
	}
	return prose.Capacity(c.word())
}

type keysAnswer struct {
	Keys []struct {
		Key     interlock.Key `json:"key"`
		State   string        `json:"state"`
		Holders []holder      `json:"holders"`
		More    int           `json:"more_holders"`
		Length  int           `json:"length"`
	} `json:"keys"`
	Cursor string `json:"cursor"`
}

type whyAnswer struct {
	Text  string     `json:"text"`
	Chain []waitLink `json:"chain"`
	Waits []struct { // of an agent, if it waits
		Chain []waitLink `json:"chain"`
	} `json:"waits"`
	Advice advice `json:"advice"`
}

type waitLink struct {
	party
	Does     string        `json:"does"`
	Key      interlock.Key `json:"key"`
	Mode     string        `json:"mode"`
	Since    int64         `json:"since_ms"`
	Liveness string        `json:"liveness"`
	Awaits   string        `json:"awaits"` // a task
}

type edge struct {
	Waiter  party         `json:"waiter"`
	Blocker party         `json:"blocker"`
	Key     interlock.Key `json:"key"`
	Mode    string        `json:"mode"`
	Ahead   bool          `json:"ahead"`
	Task    string        `json:"task"` // the wait is for its end
	Waited  int64         `json:"waited_ms"`
}

type hotAnswer struct {
	Keys []struct {
		Key     interlock.Key `json:"key"`
		Holders int           `json:"holders"`
		Length  int           `json:"length"`
	} `json:"keys"`
}
