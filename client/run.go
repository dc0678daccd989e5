package client

import (
	"cmp"
	"context"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// RunRequest is a workflow's run that is to be admitted.
type RunRequest struct {
	Org      string
	Workflow string
	Purpose  string
	Priority int

	TTL     time.Duration // 0: the pattern's, else the session's
	MaxHold time.Duration // 0: no cap
	// MaxWait is how long it may stand in line for a permit. 0 means
	// interlock.DefaultRunWait; below 0 a full house is refused at once.
	MaxWait time.Duration

	// ID makes it one run however often it is started by this client: the same ID gets
	// the same run, by another handle, as long as its lease lives. A refusal is not
	// remembered. "": a run of its own. At most interlock.MaxRequestIDBytes.
	ID string
}

// StartRun admits a run, as a lease on a permit of the organisation and one of the workflow,
// where these have a cap: see interlock.RunKeys. Its release ends the run. If there is no room
// within MaxWait, the error has CodeTooManyRuns and an estimate of when there may be.
func (c *Client) StartRun(ctx context.Context, r RunRequest) (*Lease, error) {
	wait := max(0, cmp.Or(r.MaxWait, interlock.DefaultRunWait))
	flow := c.flow(ctx, "")
	if r.ID != "" {
		flow = "run-" + r.ID // the same request, whichever flow makes it again
	}
	return c.obtain(ctx, askAnew, nil, func() *call {
		k := c.newCall(proto.OpStartRun)
		k.since = c.now()
		k.op.RequestID, k.op.Flow, k.op.Purpose, k.op.Priority = r.ID, flow, r.Purpose, clampPriority(r.Priority)
		k.op.TTL, k.op.MaxHold, k.op.MaxWait = r.TTL, r.MaxHold, wait
		k.op.Run = &proto.RunOp{Org: r.Org, Workflow: r.Workflow}
		return k
	})
}

// startAgain asks anew for a run when its wait ended with the link that it waited on, as long
// as there is patience left, and reports whether it did. mu is held.
func (c *Client) startAgain(s *session, k *call) bool {
	left := k.op.MaxWait - c.now().Sub(k.since)
	if left <= 0 || k.forgotten {
		return false
	}
	delete(s.tickets, k.ticket.ID)
	k.phase, k.op.Seq, k.op.MaxWait, k.since = ready, 0, left, c.now()
	c.submit(k)
	return true
}
