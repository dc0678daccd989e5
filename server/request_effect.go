package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/action"
)

var effectFields = []string{"id", "session", "flow", "agent", "lease", "ttl_ms", "tool", "target", "arguments", "wait_ms"}

// decodeClaimEffect reads the body of POST /v1/effects. wait is how long the caller wants to
// wait within the call for another claimer's action.
func decodeClaimEffect(d *jsonIn, cmd *engine.ClaimEffect) (wait time.Duration) {
	var tool, target string
	var arguments []byte
	d.object(effectFields, func(field int) {
		switch effectFields[field] {
		case "id":
			cmd.ID = d.effectID()
		case "session":
			cmd.Session = d.sessionID()
		case "flow":
			cmd.Flow = d.str()
		case "agent":
			cmd.Agent = d.str()
		case "lease":
			cmd.Lease = d.leaseID()
		case "ttl_ms":
			cmd.TTL = d.ms()
		case "tool":
			tool = d.str()
		case "target":
			target = d.str()
		case "arguments":
			arguments = d.any(maxJSONDepth)
		case "wait_ms":
			wait = d.ms()
		}
	})
	if d.err != nil {
		return 0
	}
	var err error
	if cmd.Action, err = action.Canonical(tool, target, arguments); err != nil {
		errors.As(err, &d.err)
	}
	return min(wait, interlock.MaxLongPoll)
}

var doneFields = []string{"result"}

// decodeDone reads the body of POST /v1/effects/{id}/done.
func decodeDone(d *jsonIn, cmd *engine.SettleEffect) {
	cmd.State = interlock.EffectDone
	d.object(doneFields, func(int) { cmd.Result = d.result() })
}

// result reads any JSON, which is kept without space between its parts.
func (d *jsonIn) result() string {
	value := d.any(maxDocumentDepth)
	if d.err != nil {
		return ""
	}
	var line bytes.Buffer
	_ = json.Compact(&line, value) // it is valid
	return line.String()
}

var reasonFields = []string{"reason"}

// decodeReason reads the body of POST /v1/effects/{id}/unknown and of /cancel.
func decodeReason(d *jsonIn, cmd *engine.SettleEffect) {
	d.object(reasonFields, func(int) { cmd.Reason = d.str() })
}

var reconcileFields = []string{"happened", "result", "reason"}

// decodeReconcile reads the body of POST /v1/effects/{digest}/reconcile.
func decodeReconcile(d *jsonIn, cmd *engine.SettleEffect) {
	var told bool
	d.object(reconcileFields, func(field int) {
		switch reconcileFields[field] {
		case "happened":
			told = true
			if d.yes() {
				cmd.State = interlock.EffectDone
			}
		case "result":
			cmd.Result = d.result()
		case "reason":
			cmd.Reason = d.str()
		}
	})
	switch {
	case d.err != nil:
	case !told:
		d.fail("field happened is missing: say whether it was done, as you found out at the target")
	case cmd.Result != "" && cmd.State != interlock.EffectDone:
		d.fail("field result: what did not happen has none")
	}
}

func (d *jsonIn) effectID() interlock.EffectID {
	id, err := interlock.ParseEffectID(d.str())
	if (err != nil || id.IsZero()) && d.err == nil { // no claim has the id of zeros
		d.err = badID("claimed effect", "e_")
	}
	return id
}
