package server

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// decodeRun reads the body of POST /v1/runs.
func decodeRun(d *jsonIn, cmd *engine.StartRun) {
	if d.runRequest(cmd)&runHasOrg == 0 {
		d.fail("field org is missing: name the organisation that the run counts towards, such as {\"org\": \"acme\"}")
	}
	cmd.MaxWait = min(cmd.MaxWait, interlock.MaxLongPoll)
}
