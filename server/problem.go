package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/packet"
	"github.com/interlockdev/interlock/internal/problem"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/shard"
)

// refused answers with a refusal of the engine.
func (c *call) refused(eff *engine.Effect, at interlock.At) {
	advice := prose.For(eff)
	j, status := c.problem(eff.Code, prose.Detail(eff), advice)
	if x := eff.Conflict; x != nil {
		writeConflict(j, x)
		writeTexts(j, "nearest", x.Nearest)
		if x.Kind != "" && x.Kind != interlock.VersionMoved || len(x.Holders) > 0 || x.Line.Length > 0 {
			writeHolders(j, x.Holders, x.More)
			writeLine(j, "line", &x.Line)
		}
		if len(x.Cycle) > 0 {
			j.openArray("cycle")
			for i := range x.Cycle {
				writeCycleStep(j, "", &x.Cycle[i])
			}
			j.closeArray()
		}
	}
	j.said("ended_by", eff.Lease.EndedBy)
	c.writeStale(j, eff.Stale, eff.StaleMore, packet.Commit)
	if eff.Effect != nil {
		writeEffect(j, "effect", prose.Effect(eff.Effect))
	}
	if len(eff.Tasks) > 0 {
		writeTask(j, "task", prose.Task(&eff.Tasks[0]), c, true)
	}
	c.sendAs(status, problemType, j, at)
}

// fail answers with a refusal of the door itself.
func (c *call) fail(err *interlock.Error) {
	at := err.At
	if at == (interlock.At{}) {
		at = c.s.shard.At()
	}
	advice := err.Advice
	if advice == (interlock.Advice{}) {
		advice = prose.ForCode(err.Code)
	}
	j, status := c.problem(err.Code, err.Message, advice)
	if err.Key != "" {
		j.text("key", string(err.Key))
	}
	if err.Code == interlock.CodeNotOwner && c.active != (Active{}) {
		writeActive(j, "active", &c.active)
	}
	c.sendAs(status, problemType, j, at)
}

func (c *call) refuse(code interlock.Code, message string) {
	c.fail(&interlock.Error{Code: code, Message: message})
}

// failWith answers with any error of the shard. Only a caller gets no answer after its own request
// has ended: the deadline of anything else, such as the journal's, is an error like others.
func (c *call) failWith(err error) {
	if e, ok := prose.Refusal(err); ok {
		c.fail(e)
		return
	}
	if e := shard.Refusal(err); e != nil {
		c.s.log.Error("a call failed because of the journal", "route", c.route, "error", err)
		c.fail(e)
		return
	}
	if c.gone() {
		c.status = statusClientGone
		return
	}
	c.s.log.Error("a call failed", "route", c.route, "error", err)
	c.refuse(interlock.CodeInternal, "internal error in this call: check the server's log")
}

// statusClientGone is counted, never sent: the caller left before its answer.
const statusClientGone = 499

// gone reports whether the caller no longer listens.
func (c *call) gone() bool { return c.r.Context().Err() != nil }

// unanswered answers a call after its handler wrote nothing, which net/http would answer with 200
// and an empty body.
func (c *call) unanswered() {
	switch {
	case c.answered:
	case c.gone():
		c.status = statusClientGone
	default:
		c.s.log.Error("a call was not answered because of an internal error", "route", c.route, "method", c.r.Method)
		c.refuse(
			interlock.CodeInternal,
			"internal error in this call, and its outcome is unknown: check the server's log",
		)
	}
}

// problem begins a problem document (RFC 9457).
func (c *call) problem(code interlock.Code, message string, advice interlock.Advice) (*jsonOut, int) {
	info := problem.Of(code)
	status := info.Status
	if c.statusOverride != 0 {
		status = c.statusOverride
	}
	if status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="interlock"`)
	}
	c.retryAfter(advice.RetryAfter)
	j := c.reply()
	j.str("type", problem.Base+string(code))
	j.str("title", info.Title)
	j.int("status", int64(status))
	j.str("code", string(code))
	j.text("detail", message)
	j.bool("retryable", code.Retryable())
	writeAdvice(j, advice)
	return j, status
}

func writeAdvice(j *jsonOut, a interlock.Advice) {
	if a == (interlock.Advice{}) {
		return
	}
	j.open("advice")
	writeAdviceMembers(j, &a)
	j.close()
}
