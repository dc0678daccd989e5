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

// decodeClaimEffect reads the body of POST /v1/effects. wait is how long the caller wants to
// wait within the call for another claimer's action.
func decodeClaimEffect(d *jsonIn, cmd *engine.ClaimEffect) (wait time.Duration) {
	var tool, target string
	var arguments []byte
	d.effectRequest(cmd, &wait, &tool, &target, &arguments)
	if d.err != nil {
		return 0
	}
	var err error
	if cmd.Action, err = action.Canonical(tool, target, arguments); err != nil {
		errors.As(err, &d.err)
	}
	return min(wait, interlock.MaxLongPoll)
}

// decodeDone reads the body of POST /v1/effects/{id}/done.
func decodeDone(d *jsonIn, cmd *engine.SettleEffect) {
	cmd.State = interlock.EffectDone
	d.doneRequest(cmd)
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

// decodeReconcile reads the body of POST /v1/effects/{digest}/reconcile.
func decodeReconcile(d *jsonIn, cmd *engine.SettleEffect) {
	var happened bool
	has := d.reconcileRequest(cmd, &happened)
	if happened {
		cmd.State = interlock.EffectDone
	}
	switch {
	case d.err != nil:
	case has&reconcileHasHappened == 0:
		d.fail("field happened is missing: true if the target shows that the effect happened, else false")
	case cmd.Result != "" && !happened:
		d.fail("field result: an effect that did not happen has none")
	}
}

func (d *jsonIn) effectID() interlock.EffectID {
	id, err := interlock.ParseEffectID(d.str())
	if (err != nil || id.IsZero()) && d.err == nil { // no claim has the id of zeros
		d.err = badID("claimed effect", "e_")
	}
	return id
}
