package server

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

var runFields = []string{"org", "workflow", "agent", "session", "flow", "purpose", "priority", "ttl_ms", "max_hold_ms", "wait_ms"}

// decodeRun reads the body of POST /v1/runs.
func decodeRun(d *jsonIn, cmd *engine.StartRun) {
	var named bool
	d.object(runFields, func(field int) {
		switch runFields[field] {
		case "org":
			named = true
			cmd.Org = d.str()
		case "workflow":
			cmd.Workflow = d.str()
		case "agent":
			cmd.Agent = d.str()
		case "session":
			cmd.Session = d.sessionID()
		case "flow":
			cmd.Flow = d.str()
		case "purpose":
			cmd.Purpose = d.str()
		case "priority":
			cmd.Priority = d.priority()
		case "ttl_ms":
			cmd.TTL = d.ms()
		case "max_hold_ms":
			cmd.MaxHold = d.ms()
		case "wait_ms":
			cmd.MaxWait = min(d.ms(), interlock.MaxLongPoll)
		}
	})
	if !named {
		d.fail("field org is missing: name the organisation whose cap the run counts towards, such as {\"org\": \"acme\"}")
	}
}

var revertFields = []string{"revision"}

// decodeRevert reads the body of POST /v1/patterns/{name}/revert.
func decodeRevert(d *jsonIn, cmd *engine.RevertPattern) {
	d.object(revertFields, func(int) { cmd.Revision = uint64(d.whole(1, maxRevision)) })
}

// maxRevision is above every revision that there can be.
const maxRevision = 1 << 53
