package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// watch tells what the holder of the lease should know, until the command has ended.
func (r *runInvocation) watch(lease *client.Lease, ended <-chan struct{}) {
	asked, warned := lease.Asked(), lease.Warned()
	for {
		select {
		case <-asked:
			asked = nil
			if y := lease.Yield(); y != nil {
				r.a.complain("%s", yieldingOf(y).text(clean(joinKeys(keysOf(lease.Claims()), ", "))))
			}
		case <-warned:
			warned = nil
			info := lease.Info()
			r.a.complain("%s", warnedText(&info, lease.Left()))
		case <-lease.Context().Done():
			r.tellLost(lease)
			return
		case <-ended:
			if lease.Context().Err() != nil { // both at once: that is why the command ended
				r.tellLost(lease)
			}
			return
		}
	}
}

func (r *runInvocation) tellLost(lease *client.Lease) {
	r.a.complain("%s: the command is ended", lostText(lease))
}

// warnedText returns which end of a lease comes near, and what prevents it.
func warnedText(l *interlock.Lease, left time.Duration) string {
	switch {
	case l.StallIn > 0 && l.StallIn <= l.ExpiresIn:
		return "the lease ends in " + short(left) + " unless the command reports progress (interlock renew --progress), in other words than last time"
	case l.MaxHoldIn > 0 && l.MaxHoldIn <= l.ExpiresIn:
		return "the lease ends in " + short(left) + ": it may not be held for longer (max_hold)"
	}
	return "the lease ends in " + short(left) + " unless a heartbeat arrives"
}

func notesOf(notes []interlock.Note) []note {
	list := make([]note, len(notes))
	for i, n := range notes {
		list[i] = note{Key: n.Key, Agent: n.Agent, Fence: n.Fence, Outcome: n.Outcome, Text: n.Text, Age: n.Age.Milliseconds()}
	}
	return list
}

// endedBy returns on which tier a lease was lost, or nothing while it is not.
func endedBy(lease *client.Lease) string {
	refusal, _ := errors.AsType[*interlock.Error](lease.Err())
	if refusal == nil {
		return ""
	}
	return refusal.EndedBy
}

// lostText returns why a lease is lost.
func lostText(lease *client.Lease) string {
	refusal, ok := errors.AsType[*interlock.Error](lease.Err())
	switch {
	case !ok:
		return "the lease is lost"
	case refusal.EndedBy != "":
		return "the lease is lost (" + clean(refusal.EndedBy) + "): " + refusalText(refusal)
	}
	return "the lease is lost: " + refusalText(refusal)
}

func skippedText(err error) string {
	text := "skipped: somebody else already does it"
	var skipped *client.SkippedError
	if errors.As(err, &skipped) && len(skipped.Holders) > 0 {
		h := holderOf(&skipped.Holders[0])
		text = fmt.Sprintf("skipped: %s is held by %s", clean(string(skipped.Key)), h.line())
	}
	return text
}
