package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// Command is an input of Step. The engine's commands are the types of command.go and
// command_task.go, and each carries its own verbs: what it decides, its fingerprint and its repeated
// answer. Package shard has commands of its own, which never reach the engine.
type Command interface {
	// Header returns the part that all commands share.
	Header() *Head
	// IsAnswered reports whether the command's caller gets an answer.
	IsAnswered() bool

	// decide carries the command out: it emits events and answers the caller.
	decide(e *Engine)
}

// decide of a Head is that of a command that the engine does not know.
func (h *Head) decide(*Engine) { panic("engine: unknown command") }

// decide does nothing: Step carries out due work before any command.
func (c *Tick) decide(*Engine) {}

// A repeatable command must not happen twice: its answer is remembered under its request id.
// The others can happen again, since they change nothing, or the same thing again.
type repeatable interface {
	Command
	// fingerprint tells bodies under one request id apart. It is in journals, so it must never
	// change. Tags make it: see Head.
	fingerprint() uint64
	// again repeats the answer that was sent before, with the present state of its subject.
	again(e *Engine, a *store.StoredAnswer)
	// remembers reports whether an answer counts for good although no event has the request id.
	// Of the refusals only that because of a holder does, but a run and a commit are asked for
	// again under the same id.
	remembers(eff *Effect) bool
	// counts reports whether an answer still counts: that to a run counts as long as it waits or
	// runs.
	counts(e *Engine, a *store.StoredAnswer) bool
}

// counts implements repeatable.
func (h *Head) counts(*Engine, *store.StoredAnswer) bool { return true }

func (h *Head) remembers(eff *Effect) bool {
	return eff.Outcome != Refused || eff.Code == interlock.CodeHeld
}

func (c *StartRun) remembers(eff *Effect) bool { return eff.Outcome != Refused }

func (c *Commit) remembers(eff *Effect) bool { return eff.Outcome != Refused }

func (c *Ack) remembers(eff *Effect) bool { return eff.Outcome != Refused }

// remembers implements repeatable: a resumption that waits for an answer is asked for again.
func (c *Resume) remembers(eff *Effect) bool {
	return c.Head.remembers(eff) && (eff.Outcome != Queued || eff.Question == nil)
}

// remembers implements repeatable: a renewal that changes nothing can happen again.
func (c *Renew) remembers(*Effect) bool { return false }

// A claimant is a command that names keys, so its refusal can be recorded.
type claimant interface {
	Command
	// summary returns a summary of the request.
	summary() requestSummary
}

// repeatables are all repeatable commands.
var repeatables = []repeatable{
	(*Acquire)(nil), (*Convert)(nil), (*Arrive)(nil), (*Declare)(nil), (*Park)(nil), (*Resume)(nil), (*Release)(nil),
	(*Leave)(nil), (*Renew)(nil),
	(*Revoke)(nil), (*RequestYield)(nil),
	(*OpenSession)(nil), (*SetPattern)(nil), (*DropPattern)(nil), (*RevertPattern)(nil), (*Configure)(nil),
	(*Commit)(nil), (*ClaimEffect)(nil), (*SettleEffect)(nil), (*SetQueue)(nil), (*SwitchQueue)(nil), (*DropQueue)(nil),
	(*Submit)(nil), (*Ack)(nil), (*Nack)(nil), (*ChangeTask)(nil), (*AskHuman)(nil), (*Answer)(nil), (*StartRun)(nil),
	(*SetWebhook)(nil), (*RotateWebhook)(nil), (*DeleteWebhook)(nil),
}

var _ = []claimant{
	(*Acquire)(nil), (*Convert)(nil), (*StartRun)(nil), (*Commit)(nil), (*Ack)(nil), (*Submit)(nil), (*CheckFence)(nil),
	(*Revoke)(nil),
}

var _ = []preparer{(*Commit)(nil), (*Submit)(nil), (*Ack)(nil)}

// Prepare reads the large bodies of a command. It may be called by any goroutine, before
// the command is handed over. The bodies must not change afterwards.
func Prepare(cmd Command) {
	if c, ok := cmd.(preparer); ok {
		c.prepare()
	}
}
