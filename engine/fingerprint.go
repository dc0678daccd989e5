package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// fingerprint tells bodies under one request id apart. It is in journals, so it
// must never change.
func fingerprint(cmd Command) uint64 {
	var p record.Fingerprint
	switch c := cmd.(type) {
	case *Acquire:
		p.Number(1)
		p.Text(c.Agent)
		p.Text(c.Flow)
		p.Text(c.Purpose)
		for i := range c.Claims {
			p.Text(string(c.Claims[i].Key))
			mode := c.Claims[i].Mode
			if mode == 0 {
				mode = interlock.Exclusive
			}
			p.Number(uint64(mode))
		}
		p.Number(uint64(c.TTL))
		p.Number(uint64(c.Grace))
		p.Number(uint64(c.MaxHold))
		p.Number(uint64(c.Priority))
		p.Number(uint64(c.OnConflict))
		c.printMore(&p)
	case *Release:
		p.Number(2)
		p.ID(c.Lease)
		p.Text(c.Outcome)
		p.Text(c.Note)
		if c.Run { // the first version had none
			p.Flags(c.Run)
		}
	case *Leave:
		p.Number(3)
		p.ID(c.Ticket)
	case *Revoke:
		p.Number(4)
		p.Text(string(c.Key))
		p.Number(uint64(c.Fence))
		p.Text(c.Reason)
	case *OpenSession:
		p.Number(5)
		p.Text(c.Agent)
		p.Number(uint64(c.TTL))
	case *Arrive:
		p.Number(7)
		p.ID(c.Lease)
		p.Number(uint64(c.MaxWait))
	case *Convert:
		p.Number(6)
		p.ID(c.Lease)
		p.Claims(c.Claims)
		p.Number(uint64(c.MaxWait))
		p.Number(uint64(c.OnConflict))
	case *Declare:
		p.Number(10)
		for _, s := range []string{c.Agent, c.Flow, c.Purpose, c.On.Session, c.On.Agent, c.On.Flow} {
			p.Text(s)
		}
		p.Number(uint64(c.MaxWait))
	case *Park:
		p.Number(9)
		p.ID(c.Lease)
		p.Flags(c.Free, c.Keep)
		p.Number(uint64(c.For))
		p.Text(c.Reason)
	case *Resume:
		p.Number(8)
		p.ID(c.Lease)
		p.Text(c.Flow)
		p.Number(uint64(c.MaxWait))
		p.Number(uint64(c.OnConflict))
		if c.Unapproved {
			p.Number(1)
		}
	case *SetPattern:
		p.Number(11)
		p.Text(string(record.AppendPattern(nil, &c.Pattern)))
	case *DropPattern:
		p.Number(12)
		p.Text(c.Name)
	case *Configure:
		p.Number(13)
		p.Text(string(record.AppendSettings(nil, &c.Settings, record.RuleFor(&c.Settings))))
	case *Commit:
		p.Number(14)
		c.print(&p)
	case *ClaimEffect:
		p.Number(15)
		p.Text(c.Agent)
		p.Text(c.Flow)
		p.Text(c.Action)
		p.ID(c.Lease)
		p.Number(uint64(c.TTL))
	case *SettleEffect:
		p.Number(16)
		p.ID(c.ID)
		p.Text(string(c.Digest[:]))
		p.Number(uint64(c.State))
		p.Text(c.Result)
		p.Text(c.Reason)
	case *SetQueue:
		p.Number(17)
		p.Text(string(record.AppendQueue(nil, &c.Queue)))
	case *SwitchQueue:
		p.Number(32)
		p.Text(c.Name)
		p.Number(uint64(c.Paused))
		p.Number(uint64(c.Drain))
	case *DropQueue:
		p.Number(18)
		p.Text(c.Name)
	case *Submit:
		p.Number(19)
		p.Text(c.Agent)
		p.Text(c.Flow)
		c.Task.print(&p)
	case *Ack:
		p.Number(20)
		c.print(&p)
	case *Nack:
		p.Number(21)
		p.ID(c.Lease)
		p.Text(c.Reason)
		p.Number(uint64(c.Delay))
		p.Flags(c.Dead, c.Unseen)
	case *ChangeTask:
		p.Number(22)
		p.ID(c.Task)
		p.Number(uint64(c.Change))
		p.Number(uint64(c.Delay))
		p.Text(c.Reason)
	case *AskHuman:
		p.Number(23)
		p.ID(c.Lease)
		p.Question(&c.Question)
	case *Answer:
		p.Number(24)
		p.ID(c.Task)
		if c.Fence != 0 {
			p.Number(uint64(c.Fence))
		}
		p.Number(uint64(c.Verdict))
		p.Text(c.By)
		p.Text(c.Reason)
	case *StartRun: // not for how long it may wait
		p.Number(30)
		for _, s := range []string{c.Org, c.Workflow, c.Agent, c.Flow, c.Purpose} {
			p.Text(s)
		}
		for _, n := range []int64{int64(c.Priority), int64(c.TTL), int64(c.MaxHold)} {
			p.Number(uint64(n))
		}
	case *RevertPattern:
		p.Number(31)
		p.Text(c.Name)
		p.Number(c.Revision)
	}
	return uint64(p)
}

// print adds the body of a task to a fingerprint.
func (x *TaskSpec) print(p *record.Fingerprint) {
	for _, s := range []string{x.Queue, x.Kind, string(x.Payload), x.Purpose, x.Group, string(x.Key)} {
		p.Text(s)
	}
	p.Claims(x.Claims)
	for _, n := range []int64{int64(x.Priority), int64(x.Delay), int64(x.Deadline), int64(x.MaxAttempts), int64(x.Backoff), int64(x.MaxBackoff)} {
		p.Number(uint64(n))
	}
	p.Flags(x.Message, x.Ask != nil)
	if x.Ask != nil {
		p.Question(x.Ask)
	}
}

// print adds the body of an acknowledgement to its fingerprint.
func (c *Ack) print(p *record.Fingerprint) {
	p.ID(c.Lease)
	p.Text(string(c.Result))
	commit := Commit{CommitRequest: c.CommitRequest}
	commit.print(p)
	p.Number(uint64(len(c.Tasks)))
	for i := range c.Tasks {
		c.Tasks[i].print(p)
	}
}

// printMore adds what requests of the first version did not have, so that a body
// without any of it keeps its fingerprint.
func (c *Acquire) printMore(p *record.Fingerprint) {
	extra := func(field, v uint64) {
		if v != 0 {
			p.Number(field)
			p.Number(v)
		}
	}
	for i := range c.Claims {
		extra(1, uint64(c.Claims[i].Count))
	}
	if c.Any {
		extra(2, 1)
	}
	if c.Prefix != "" {
		extra(3, 1)
		p.Text(c.Prefix)
	}
	if c.Group != "" {
		extra(4, 1)
		p.Text(c.Group)
	}
	extra(5, uint64(c.Division))
	extra(6, uint64(c.Stall))
	extra(7, uint64(c.LockDelay))
	extra(8, uint64(c.MaxWait))
	extra(9, uint64(c.AsOf))
	if c.Documents {
		extra(10, 1)
	}
}

// print adds the body of a commit to its fingerprint.
func (c *Commit) print(p *record.Fingerprint) {
	p.Text(c.Agent)
	p.Text(c.Flow)
	p.Text(c.Note)
	p.Number(uint64(c.AsOf))
	p.Reads(c.Reads)
	p.Number(uint64(len(c.Writes)))
	for i := range c.Writes {
		w := &c.Writes[i]
		p.Text(string(w.Key))
		p.Number(uint64(w.Op))
		p.Text(cmp.Or(w.ContentType, interlock.JSONType))
		p.Text(string(w.Body))
		p.Number(uint64(w.Delta))
		p.Flags(w.Min != nil, w.Max != nil)
		for _, bound := range []*int64{w.Min, w.Max} {
			if bound != nil {
				p.Number(uint64(*bound))
			}
		}
	}
	for _, id := range c.Leases {
		p.ID(id)
	}
}
