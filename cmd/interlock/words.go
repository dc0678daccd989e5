package main

import (
	"time"

	"github.com/interlockdev/interlock"
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
}

// name is how somebody is called in a table: the agent, or what else there is.
func (p party) name() string {
	if name := clean(p.Agent); name != "" {
		return name
	}
	if p.Session != "" {
		return "session " + clean(p.Session)
	}
	return "(anonymous)"
}

// full adds the flow, and the session, which tells agents of one name apart.
func (p party) full() string {
	name := p.name()
	switch {
	case p.Session != "" && p.Flow != "" && p.Agent != "":
		return name + " (" + clean(p.Session) + ", " + clean(p.Flow) + ")"
	case p.Session != "" && p.Agent != "":
		return name + " (" + clean(p.Session) + ")"
	}
	return name
}

type holder struct {
	party
	Purpose      string          `json:"purpose"`
	Key          interlock.Key   `json:"key"`
	Mode         string          `json:"mode"`
	Fence        interlock.Fence `json:"fence,string"`
	Liveness     string          `json:"liveness"`
	HeartbeatAge int64           `json:"heartbeat_age_ms"`
	Held         int64           `json:"held_ms"`
	ExpiresIn    int64           `json:"expires_in_ms"`
	Progress     string          `json:"progress"`
}

func (h *holder) word() interlock.Holder {
	mode, _ := interlock.ParseMode(h.Mode)
	w := interlock.Holder{
		Agent: h.Agent, Session: h.Session, Flow: h.Flow, Purpose: h.Purpose, Key: h.Key, Mode: mode, Fence: h.Fence,
		HeartbeatAge: ms(h.HeartbeatAge), Held: ms(h.Held), ExpiresIn: ms(h.ExpiresIn), Progress: h.Progress,
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
	return holder{
		party: party{w.Agent, w.Session, w.Flow}, Purpose: w.Purpose, Key: w.Key, Mode: w.Mode.String(), Fence: w.Fence,
		Liveness: w.Liveness.String(), HeartbeatAge: w.HeartbeatAge.Milliseconds(), Held: w.Held.Milliseconds(),
		ExpiresIn: w.ExpiresIn.Milliseconds(), Progress: w.Progress,
	}
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
}

func (c *cycleStep) word() interlock.CycleStep {
	mode, _ := interlock.ParseMode(c.Mode)
	return interlock.CycleStep{Agent: c.Agent, Session: c.Session, Flow: c.Flow, Key: c.Key, Mode: mode, Victim: c.Victim}
}

type claim struct {
	Key  interlock.Key `json:"key"`
	Mode string        `json:"mode,omitempty"`
}

type note struct {
	Key     interlock.Key   `json:"key"`
	Agent   string          `json:"agent"`
	Fence   interlock.Fence `json:"fence,string"`
	Outcome string          `json:"outcome"`
	Text    string          `json:"text"`
	Age     int64           `json:"age_ms"`
}

type lease struct {
	ID        string          `json:"id"`
	Fence     interlock.Fence `json:"fence,string"`
	Claims    []claim         `json:"claims"`
	TTL       int64           `json:"ttl_ms"`
	Grace     int64           `json:"grace_ms"`
	ExpiresIn int64           `json:"expires_in_ms"`
	MaxHoldIn int64           `json:"max_hold_in_ms"`
	State     string          `json:"state"`
}

type ticket struct {
	ID       string `json:"id"`
	Position int    `json:"position"`
	Length   int    `json:"length"`
	ETA      int64  `json:"eta_ms"`
}

func (t *ticket) eta() time.Duration { return ms(t.ETA) }

// leaseAnswer is what a request for a lease comes to.
type leaseAnswer struct {
	Outcome string   `json:"outcome"`
	Lease   lease    `json:"lease"`
	Changed bool     `json:"changed"`
	Notes   []note   `json:"notes"`
	Ticket  ticket   `json:"ticket"`
	Key     string   `json:"key"`
	Holders []holder `json:"holders"`
	Advice  advice   `json:"advice"`
}

type waiter struct {
	party
	Purpose  string `json:"purpose"`
	Mode     string `json:"mode"`
	Priority int    `json:"priority"`
	Position int    `json:"position"`
	Waited   int64  `json:"waited_ms"`
	ETA      int64  `json:"eta_ms"`
	Offered  bool   `json:"offered"`
}

type keyAnswer struct {
	Key        interlock.Key   `json:"key"`
	State      string          `json:"state"`
	Holders    []holder        `json:"holders"`
	More       int             `json:"more_holders"`
	Line       []waiter        `json:"line"`
	Length     int             `json:"length"`
	FenceFloor interlock.Fence `json:"fence_floor,string"`
	Notes      []note          `json:"notes"`
	HoldTime   int64           `json:"hold_time_ms"`
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
	Text  string `json:"text"`
	Chain []struct {
		party
		Does     string        `json:"does"`
		Key      interlock.Key `json:"key"`
		Mode     string        `json:"mode"`
		Since    int64         `json:"since_ms"`
		Liveness string        `json:"liveness"`
	} `json:"chain"`
	Advice advice `json:"advice"`
}

type edge struct {
	Waiter  party         `json:"waiter"`
	Blocker party         `json:"blocker"`
	Key     interlock.Key `json:"key"`
	Mode    string        `json:"mode"`
	Ahead   bool          `json:"ahead"`
	Waited  int64         `json:"waited_ms"`
}

type hotAnswer struct {
	Keys []struct {
		Key     interlock.Key `json:"key"`
		Holders int           `json:"holders"`
		Length  int           `json:"length"`
	} `json:"keys"`
}
