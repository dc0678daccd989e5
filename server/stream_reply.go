package server

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// write sends what is in st.out, as many replies a frame as there are, until the
// stream ends.
func (st *stream) write() {
	var (
		frame    proto.ServerFrame
		batch    []delivered
		draining = st.d.s.Draining()
		goAway   bool
		timeout  = time.AfterFunc(time.Hour, func() { st.cut(unread(st.d.cfg.WriteTimeout)) })
	)
	timeout.Stop()
	defer timeout.Stop()
	send := func() bool {
		timeout.Reset(st.d.cfg.WriteTimeout)
		err := st.link.Send(&frame)
		if !timeout.Stop() || err != nil {
			st.cut(nil)
			return false
		}
		frame.Reset()
		return true
	}
	for {
		select {
		case <-st.wake:
		case <-draining:
			draining, goAway = nil, true
		case <-st.d.s.shard.Failed():
			st.cut(shardFailed(st.d.s.shard.Err()))
		case <-st.life.Done():
		}
		if batch = st.take(batch); batch == nil {
			return
		}
		if goAway {
			goAway = false
			frame.GoAway = &proto.GoAway{RetryAfter: comeBackAfter, Message: "the server is shutting down: connect again in a moment; leases and places in line are kept"}
			if len(batch) == 0 && !send() {
				return
			}
		}
		for rest := batch; len(rest) > 0; {
			size, bulk := 0, 0
			for len(rest) > 0 && len(frame.Replies) < maxReplies && size < proto.FullFrameBytes {
				d := &rest[0]
				frame.Shard, frame.Epoch = uint32(d.at.Shard), d.at.Epoch
				r := frame.Next()
				d.reply(r, st)
				size, bulk, rest = size+r.Bulk(), bulk+d.bulk, rest[1:]
			}
			if !send() {
				return
			}
			st.carry(-bulk)
		}
	}
}

// comeBackAfter is the mean time after which clients come back to a server that
// shuts down.
const comeBackAfter = 500 * time.Millisecond

// take exchanges the empty slice for what is to be sent; nil says that the
// stream has ended. Slices that a burst has made large are not kept.
func (st *stream) take(empty []delivered) []delivered {
	clear(empty)
	if cap(empty) > 2*maxReplies {
		empty = nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return nil
	}
	batch := st.out
	st.out = empty[:0]
	if batch == nil {
		batch = []delivered{}
	}
	st.room.Signal()
	return batch
}

func slowReader(n int) *interlock.Error {
	return &interlock.Error{
		Code:    interlock.CodeOverloaded,
		Message: fmt.Sprintf("%d answers wait to be read: read faster, or use more streams; nothing is lost, connect again and attach", n),
	}
}

func unread(d time.Duration) *interlock.Error {
	return &interlock.Error{
		Code:    interlock.CodeOverloaded,
		Message: fmt.Sprintf("nothing was read from this stream for %v: nothing is lost, connect again and attach", d),
	}
}

func shardFailed(err error) *interlock.Error {
	code, message := interlock.CodeOutcomeUnknown, "the server's storage failed: connect again and repeat what was not answered"
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		code = refusal.Code
	}
	return &interlock.Error{Code: code, Message: message}
}

// reply turns an effect into what the client of the stream is told. Text that came from agents
// is cleaned on the way.
func (d *delivered) reply(r *proto.Reply, st *stream) {
	eff := &d.eff
	r.Outcome, r.Slot, r.Seq, r.Index = proto.Outcome(eff.Outcome), d.slot, d.seq, d.at.Index
	r.Code, r.Message = eff.Code, cleanText(eff.Message)
	switch eff.Outcome {
	case engine.Granted, engine.Warned, engine.Lost, engine.Asked:
		r.Lease = eff.Lease
		if r.AsAsked = d.asAsked; d.asAsked {
			r.Lease.Claims, r.Lease.Agent, r.Lease.Session, r.Lease.Flow, r.Lease.Purpose = nil, "", "", "", ""
		}
		cleanLease(&r.Lease)
	case engine.Refused:
		r.EndedBy = eff.Lease.EndedBy
	case engine.Queued:
		ticket := eff.Ticket
		r.Ticket = &ticket
	case engine.Done:
		r.Lease = eff.Lease
		cleanLease(&r.Lease)
		if s := &eff.Session; !s.ID.IsZero() {
			r.Session = &proto.Session{ID: s.ID, Name: s.Name, Agent: cleanText(s.Agent), TTL: s.TTL, ExpiresIn: s.ExpiresIn}
		}
		for i := range eff.Losses {
			loss := proto.Loss{Lease: eff.Losses[i].Lease, Code: eff.Losses[i].Code, Message: cleanText(eff.Losses[i].Message)}
			cleanLease(&loss.Lease)
			r.Losses = append(r.Losses, loss)
		}
	}
	if c := eff.Conflict; c != nil {
		r.Conflict = conflictOf(c)
	}
	r.Warnings = cleanTexts(eff.Warnings)
	d.addState(r, st)
	d.addTasks(r)
	if d.read != nil {
		r.Patterns, r.More, r.Settings = d.read.patterns, d.read.more, d.read.settings
	}
	if eff.Outcome == engine.Done && len(eff.Tasks) > 0 && eff.Contention == nil {
		return // whoever has the task needs no words about it
	}
	if d.brief && (eff.Outcome == engine.Granted || eff.Outcome == engine.Queued) {
		return
	}
	if advice := adviceFor(eff); advice != (interlock.Advice{}) {
		r.Advice = &interlock.Advice{Action: advice.Action, RetryAfter: advice.RetryAfter, Message: advice.Message}
	}
}

func cleanLease(l *interlock.Lease) {
	l.Agent, l.Flow, l.Purpose, l.Group = cleanText(l.Agent), cleanText(l.Flow), cleanText(l.Purpose), cleanText(l.Group)
	l.Yield = cleanYield(l.Yield)
	l.Parking = cleanParking(l.Parking)
	l.Stale, l.StaleMore = nil, false // the packet says it
	if len(l.Notes) == 0 {
		return
	}
	notes := make([]interlock.Note, len(l.Notes))
	for i, n := range l.Notes {
		n.Agent, n.Outcome, n.Text = cleanText(n.Agent), cleanText(n.Outcome), cleanNote(n.Text)
		notes[i] = n
	}
	l.Notes = notes
}

func cleanYield(y *interlock.Yield) *interlock.Yield {
	if y == nil {
		return nil
	}
	clean := *y
	clean.Agent, clean.Flow, clean.Purpose = cleanText(y.Agent), cleanText(y.Flow), cleanText(y.Purpose)
	return &clean
}

func cleanParking(p *interlock.Parking) *interlock.Parking {
	if p == nil {
		return nil
	}
	clean := *p
	clean.Reason = cleanText(p.Reason)
	return &clean
}

func cleanCapacity(c *interlock.Capacity) *interlock.Capacity {
	if c == nil || len(c.Groups) == 0 {
		return c
	}
	clean := *c
	clean.Groups = slices.Clone(c.Groups)
	for i := range clean.Groups {
		clean.Groups[i].Name = cleanText(clean.Groups[i].Name)
	}
	return &clean
}

func conflictOf(c *engine.Conflict) *proto.Conflict {
	p := &proto.Conflict{Key: c.Key, Kind: c.Kind, More: c.More, Queue: c.Queue, Capacity: cleanCapacity(c.Capacity), Nearest: cleanTexts(c.Nearest)}
	for _, h := range c.Holders {
		h.Agent, h.Flow, h.Purpose, h.Progress = cleanText(h.Agent), cleanText(h.Flow), cleanText(h.Purpose), cleanText(h.Progress)
		h.Yield, h.Parking = cleanYield(h.Yield), cleanParking(h.Parking)
		p.Holders = append(p.Holders, h)
	}
	for _, step := range c.Cycle {
		step.Agent, step.Flow = cleanText(step.Agent), cleanText(step.Flow)
		p.Cycle = append(p.Cycle, step)
	}
	return p
}

func cleanTexts(list []string) (clean []string) {
	for _, s := range list {
		clean = append(clean, cleanText(s))
	}
	return clean
}
