package cli

import (
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// Texts of the parts that several answers have in common, and their conversion from and to the
// types of the client.

// Next returns the next step that the server advises, "" without one.
func Next(a *api.Advice) string {
	if a == nil {
		return ""
	}
	return AsFlags(Clean(a.Message))
}

// AgentName returns the name of an agent in a table, or what else identifies it.
func AgentName(n api.Name) string {
	if name := Clean(n.Agent); name != "" {
		return name
	}
	if n.Session != "" {
		return "session " + Clean(n.Session)
	}
	return "(anonymous)"
}

// FullName adds the flow, and the session, which tells agents of one name apart.
func FullName(n api.Name) string {
	name := AgentName(n)
	switch {
	case n.Session != "" && n.Flow != "" && n.Agent != "":
		return name + " (" + Clean(n.Session) + ", " + Clean(n.Flow) + ")"
	case n.Session != "" && n.Agent != "":
		return name + " (" + Clean(n.Session) + ")"
	}
	return name
}

// PartyName returns the task in line, with the name of its submitter, or the full name.
func PartyName(p api.Party) string {
	if p.Task != "" {
		return "task " + Clean(p.Task) + " of " + AgentName(p.Name)
	}
	return FullName(p.Name)
}

// holderOf converts a holder to the form of the client.
func holderOf(h *api.Holder) interlock.Holder {
	mode, _ := interlock.ParseMode(h.Mode)
	w := interlock.Holder{
		Agent: h.Agent, Session: h.Session, Flow: h.Flow, Purpose: h.Purpose, Key: h.Key, Mode: mode,
		Count: max(h.Permits, h.Parties, h.Parts), Fence: h.Fence, Progress: h.Progress, EndedBy: h.EndedBy,
		HeartbeatAge: Millis(h.HeartbeatAge), Held: Millis(h.Held), ExpiresIn: Millis(h.ExpiresIn),
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

// HolderOf converts a holder from the form of the client.
func HolderOf(w *interlock.Holder) api.Holder {
	h := api.Holder{
		Name: api.Name{Agent: w.Agent, Session: w.Session, Flow: w.Flow}, Purpose: w.Purpose, Key: w.Key,
		Mode: w.Mode.String(), Count: CountOf(w.Mode, w.Count), Fence: w.Fence, Liveness: w.Liveness.String(),
		HeartbeatAge: w.HeartbeatAge.Milliseconds(), Held: w.Held.Milliseconds(), ExpiresIn: w.ExpiresIn.Milliseconds(),
		Progress: w.Progress, EndedBy: w.EndedBy,
	}
	if w.Yield != nil {
		h.Yield = YieldOf(w.Yield)
	}
	return h
}

// HolderText returns a holder in half a sentence: "billing-7 (held for 12s, live): apply late fee".
func HolderText(h *api.Holder) string {
	text := AgentName(h.Name) + " (held for " + ShortMillis(h.Held) + ", " + OrDash(Clean(h.Liveness)) + ")"
	if purpose := Clean(h.Purpose); purpose != "" {
		text += ": " + purpose
	}
	return text
}

// cycleStepOf converts a step of a deadlock's cycle to the form of the client.
func cycleStepOf(c *api.CycleStep) interlock.CycleStep {
	mode, _ := interlock.ParseMode(c.Mode)
	w := interlock.CycleStep{
		Agent: c.Agent, Session: c.Session, Flow: c.Flow, Key: interlock.Key(c.Key), Mode: mode, Victim: c.Victim,
	}
	for n := interlock.Holds; n.String() != ""; n++ {
		if n.String() == c.Next {
			w.Next = n
		}
	}
	return w
}

// YieldOf converts a request to yield from the form of the client.
func YieldOf(y *interlock.Yield) *api.Yield {
	return &api.Yield{
		Name:    api.Name{Agent: y.Agent, Session: y.Session, Flow: y.Flow},
		Purpose: y.Purpose, Priority: y.Priority, Since: y.Since.Milliseconds(), Revoked: y.Revoked,
	}
}

// YieldText returns a request to yield as the holder should read it; what names the keys.
func YieldText(y *api.Yield, what string) string {
	name := AgentName(y.Name)
	text := name + " asks you to yield " + what
	if y.Revoked {
		text = name + " has asked for " + what + ", and it is being taken from you: finish now"
	}
	return text + quotedPurpose(y.Purpose)
}

// YieldTold returns a request to yield as others should read it; holder is the asked one.
func YieldTold(y *api.Yield, holder string) string {
	name, ago := AgentName(y.Name), ShortMillis(y.Since)+" ago"
	text := name + " asked " + holder + " to yield " + ago
	if y.Revoked {
		text = name + " preempted " + holder + " " + ago
	}
	return text + quotedPurpose(y.Purpose)
}

func quotedPurpose(purpose string) string {
	if purpose = Clean(purpose); purpose != "" {
		return ": " + strconv.Quote(purpose)
	}
	return ""
}

// capacityOf converts a capacity to the form of the client: nil for a key without one.
func capacityOf(c *api.Capacity) *interlock.Capacity {
	if c == nil {
		return nil
	}
	w := &interlock.Capacity{
		Permits: uint32(c.Permits), Used: uint32(c.Used), Tokens: uint32(c.Tokens), Available: uint32(c.Available),
		Refill: Millis(c.Refill),
	}
	for _, g := range c.Groups {
		group := interlock.Group{Name: g.Name, Min: uint32(g.Min), Max: uint32(g.Max)}
		w.Groups = append(w.Groups, interlock.GroupUse{Group: group, Used: uint32(g.Used)})
	}
	return w
}

// CapacityText returns a capacity in half a sentence.
func CapacityText(c *api.Capacity) string { return prose.Capacity(capacityOf(c)) }

// CountOf returns the count of a claim with that mode.
func CountOf(mode interlock.Mode, n uint32) (c api.Count) {
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

// ModeText returns what is wanted or held of a key: "exclusive", "2 permits", "1 of 3 parties".
func ModeText(mode api.Mode, c api.Count) string {
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
