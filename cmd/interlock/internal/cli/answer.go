package cli

import (
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/prose"
)

// The words of the HTTP/JSON door, as far as the commands show them. Fields that a
// later server adds are passed over.

// At is a position in the journal.
type At struct {
	Shard int             `json:"shard"`
	Epoch interlock.Epoch `json:"epoch,string"`
	Index interlock.Index `json:"index,string"`
}

func (a At) word() interlock.At { return interlock.At{Shard: a.Shard, Epoch: a.Epoch, Index: a.Index} }

// Advice is the server's advice after a refusal.
type Advice struct {
	Action     interlock.Action `json:"action"`
	RetryAfter int64            `json:"retry_after_ms"`
	Message    string           `json:"message"`
}

func (a Advice) word() interlock.Advice {
	return interlock.Advice{Action: a.Action, RetryAfter: Millis(a.RetryAfter), Message: a.Message}
}

// Party is an agent with its session and flow.
type Party struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Flow    string `json:"flow"`
	Task    string `json:"task,omitempty"` // which is in line; Agent is its submitter
}

// Name is the name of a party in a table: the agent, or what else there is.
func (p Party) Name() string {
	if name := Clean(p.Agent); name != "" {
		return name
	}
	if p.Session != "" {
		return "session " + Clean(p.Session)
	}
	return "(anonymous)"
}

// Short is the name, or the task in line.
func (p Party) Short() string {
	if p.Task != "" {
		return "task " + Clean(p.Task)
	}
	return p.Name()
}

// Full adds the flow, and the session, which tells agents of one name apart.
func (p Party) Full() string {
	name := p.Name()
	switch {
	case p.Task != "":
		return "task " + Clean(p.Task) + " of " + name
	case p.Session != "" && p.Flow != "" && p.Agent != "":
		return name + " (" + Clean(p.Session) + ", " + Clean(p.Flow) + ")"
	case p.Session != "" && p.Agent != "":
		return name + " (" + Clean(p.Session) + ")"
	}
	return name
}

// Holder is a holder of a key.
type Holder struct {
	Party
	Purpose string        `json:"purpose"`
	Key     interlock.Key `json:"key"`
	Mode    string        `json:"mode"`
	Amount
	Fence        interlock.Fence `json:"fence,string"`
	Liveness     string          `json:"liveness"`
	HeartbeatAge int64           `json:"heartbeat_age_ms"`
	Held         int64           `json:"held_ms"`
	ExpiresIn    int64           `json:"expires_in_ms"`
	Progress     string          `json:"progress"`
	EndedBy      string          `json:"ended_by,omitempty"`
	Yield        *YieldRequest   `json:"yield,omitempty"`
}

func (h *Holder) word() interlock.Holder {
	mode, _ := interlock.ParseMode(h.Mode)
	w := interlock.Holder{
		Agent: h.Agent, Session: h.Session, Flow: h.Flow, Purpose: h.Purpose, Key: h.Key, Mode: mode, Count: h.number(),
		Fence:        h.Fence,
		HeartbeatAge: Millis(h.HeartbeatAge), Held: Millis(h.Held), ExpiresIn: Millis(h.ExpiresIn), Progress: h.Progress,
		EndedBy: h.EndedBy,
	}
	if y := h.Yield; y != nil {
		w.Yield = &interlock.Yield{
			Agent: y.Agent, Session: y.Session, Flow: y.Flow, Purpose: y.Purpose, Priority: y.Priority, Since: Millis(y.Since),
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

// HolderOf is the other way round.
func HolderOf(w *interlock.Holder) Holder {
	h := Holder{
		Party: Party{Agent: w.Agent, Session: w.Session, Flow: w.Flow}, Purpose: w.Purpose, Key: w.Key, Mode: w.Mode.String(),
		Amount: AmountOf(w.Mode, w.Count), Fence: w.Fence,
		Liveness: w.Liveness.String(), HeartbeatAge: w.HeartbeatAge.Milliseconds(), Held: w.Held.Milliseconds(),
		ExpiresIn: w.ExpiresIn.Milliseconds(), Progress: w.Progress, EndedBy: w.EndedBy,
	}
	if w.Yield != nil {
		h.Yield = YieldOf(w.Yield)
	}
	return h
}

// Line is a holder in half a sentence: "billing-7 (held for 12s, live): apply late
// fee".
func (h *Holder) Line() string {
	text := h.Name() + " (held for " + Short(Millis(h.Held)) + ", " + OrDash(Clean(h.Liveness)) + ")"
	if purpose := Clean(h.Purpose); purpose != "" {
		text += ": " + purpose
	}
	return text
}

// CycleStep is one step of a deadlock's circle.
type CycleStep struct {
	Party
	Key    interlock.Key `json:"key"`
	Mode   string        `json:"mode"`
	Victim bool          `json:"victim"`
	Next   string        `json:"next"`
}

func (c *CycleStep) word() interlock.CycleStep {
	mode, _ := interlock.ParseMode(c.Mode)
	w := interlock.CycleStep{Agent: c.Agent, Session: c.Session, Flow: c.Flow, Key: c.Key, Mode: mode, Victim: c.Victim}
	for n := interlock.Holds; n.String() != ""; n++ {
		if n.String() == c.Next {
			w.Next = n
		}
	}
	return w
}

// YieldRequest is a request to a holder to release its keys.
type YieldRequest struct {
	Party
	Purpose  string `json:"purpose"`
	Priority int    `json:"priority"`
	Since    int64  `json:"since_ms"`
	Revoked  bool   `json:"revoked"`
}

// YieldOf converts a request to yield from the form of the client.
func YieldOf(y *interlock.Yield) *YieldRequest {
	return &YieldRequest{
		Party{Agent: y.Agent, Session: y.Session, Flow: y.Flow}, y.Purpose, y.Priority, y.Since.Milliseconds(), y.Revoked,
	}
}

// Text is the request as its holder should read it; what names the keys.
func (y *YieldRequest) Text(what string) string {
	text := y.Name() + " asks you to yield " + what
	if y.Revoked {
		text = y.Name() + " has asked for " + what + ", and it is being taken from you: finish now"
	}
	if purpose := Clean(y.Purpose); purpose != "" {
		text += ": " + strconv.Quote(purpose)
	}
	return text
}

// Told returns the request as others should read it; of names the asked holder.
func (y *YieldRequest) Told(holder string) string {
	text := y.Name() + " asked " + holder + " to yield " + Short(Millis(y.Since)) + " ago"
	if y.Revoked {
		text = y.Name() + " preempted " + holder + " " + Short(Millis(y.Since)) + " ago"
	}
	if purpose := Clean(y.Purpose); purpose != "" {
		text += ": " + strconv.Quote(purpose)
	}
	return text
}

// Capacity is how full a key with permits or tokens is.
type Capacity struct {
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
func (c *Capacity) word() *interlock.Capacity {
	if c == nil {
		return nil
	}
	w := &interlock.Capacity{
		Permits: c.Permits, Used: c.Used, Tokens: c.Tokens, Available: c.Available, Refill: Millis(c.Refill),
	}
	for _, g := range c.Groups {
		w.Groups = append(
			w.Groups, interlock.GroupUse{Group: interlock.Group{Name: g.Name, Min: g.Min, Max: g.Max}, Used: g.Used},
		)
	}
	return w
}

// Text is a capacity in half a sentence, "" for none.
func (c *Capacity) Text() string {
	if c == nil {
		return ""
	}
	return prose.Capacity(c.word())
}

// Amount is the count of a claim, if it has one.
type Amount struct {
	Permits uint32 `json:"permits,omitempty"`
	Parties uint32 `json:"parties,omitempty"`
	Parts   uint32 `json:"parts,omitempty"`
}

// AmountOf returns the count of a claim with that mode.
func AmountOf(mode interlock.Mode, n uint32) (c Amount) {
	switch mode {
	case interlock.Permits:
		c.Permits = n
	case interlock.Barrier:
		c.Parties = n
	case interlock.Member:
		c.Parts = n
	}
	return c
}

func (c Amount) number() uint32 { return max(c.Permits, c.Parties, c.Parts) }

// What is wanted or had of a key, for people: "exclusive", "2 permits", "1 of 3
// parties".
func (c Amount) What(mode string) string {
	switch {
	case c.Permits > 0:
		return Count(int(c.Permits), "permit", "permits")
	case c.Parties > 0:
		return "1 of " + Count(int(c.Parties), "party", "parties")
	case c.Parts > 0:
		return "member of " + Count(int(c.Parts), "part", "parts")
	}
	return OrDash(Clean(mode))
}
