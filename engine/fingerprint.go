package engine

import (
	"cmp"
	"encoding/binary"
	"math/bits"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// fingerprint tells bodies under one request id apart. It is in journals, so it
// must never change.
func fingerprint(cmd Command) uint64 {
	var p print
	switch c := cmd.(type) {
	case *Acquire:
		p.number(1)
		p.text(c.Agent)
		p.text(c.Flow)
		p.text(c.Purpose)
		for i := range c.Claims {
			p.text(string(c.Claims[i].Key))
			mode := c.Claims[i].Mode
			if mode == 0 {
				mode = interlock.Exclusive
			}
			p.number(uint64(mode))
		}
		p.number(uint64(c.TTL))
		p.number(uint64(c.Grace))
		p.number(uint64(c.MaxHold))
		p.number(uint64(c.Priority))
		p.number(uint64(c.OnConflict))
		c.printMore(&p)
	case *Release:
		p.number(2)
		p.id(c.Lease)
		p.text(c.Outcome)
		p.text(c.Note)
		if c.Run { // the first version had none
			p.flags(c.Run)
		}
	case *Leave:
		p.number(3)
		p.id(c.Ticket)
	case *Revoke:
		p.number(4)
		p.text(string(c.Key))
		p.number(uint64(c.Fence))
		p.text(c.Reason)
	case *OpenSession:
		p.number(5)
		p.text(c.Agent)
		p.number(uint64(c.TTL))
	case *Arrive:
		p.number(7)
		p.id(c.Lease)
		p.number(uint64(c.MaxWait))
	case *Convert:
		p.number(6)
		p.id(c.Lease)
		p.claims(c.Claims)
		p.number(uint64(c.MaxWait))
		p.number(uint64(c.OnConflict))
	case *Declare:
		p.number(10)
		for _, s := range []string{c.Agent, c.Flow, c.Purpose, c.On.Session, c.On.Agent, c.On.Flow} {
			p.text(s)
		}
		p.number(uint64(c.MaxWait))
	case *Park:
		p.number(9)
		p.id(c.Lease)
		p.flags(c.Free, c.Keep)
		p.number(uint64(c.For))
		p.text(c.Reason)
	case *Resume:
		p.number(8)
		p.id(c.Lease)
		p.text(c.Flow)
		p.number(uint64(c.MaxWait))
		p.number(uint64(c.OnConflict))
		if c.Unapproved {
			p.number(1)
		}
	case *SetPattern:
		p.number(11)
		p.text(string(appendPattern(nil, &c.Pattern)))
	case *DropPattern:
		p.number(12)
		p.text(c.Name)
	case *Configure:
		p.number(13)
		p.text(string(appendSettings(nil, &c.Settings, ruleFor(&c.Settings))))
	case *Commit:
		p.number(14)
		c.print(&p)
	case *ClaimEffect:
		p.number(15)
		p.text(c.Agent)
		p.text(c.Flow)
		p.text(c.Action)
		p.id(c.Lease)
		p.number(uint64(c.TTL))
	case *SettleEffect:
		p.number(16)
		p.id(c.ID)
		p.text(string(c.Digest[:]))
		p.number(uint64(c.State))
		p.text(c.Result)
		p.text(c.Reason)
	case *SetQueue:
		p.number(17)
		p.text(string(appendQueue(nil, &c.Queue)))
	case *SwitchQueue:
		p.number(32)
		p.text(c.Name)
		p.number(uint64(c.Paused))
		p.number(uint64(c.Drain))
	case *DropQueue:
		p.number(18)
		p.text(c.Name)
	case *Submit:
		p.number(19)
		p.text(c.Agent)
		p.text(c.Flow)
		c.Task.print(&p)
	case *Ack:
		p.number(20)
		c.print(&p)
	case *Nack:
		p.number(21)
		p.id(c.Lease)
		p.text(c.Reason)
		p.number(uint64(c.Delay))
		p.flags(c.Dead, c.Unseen)
	case *ChangeTask:
		p.number(22)
		p.id(c.Task)
		p.number(uint64(c.Change))
		p.number(uint64(c.Delay))
		p.text(c.Reason)
	case *AskHuman:
		p.number(23)
		p.id(c.Lease)
		p.question(&c.Question)
	case *Answer:
		p.number(24)
		p.id(c.Task)
		if c.Fence != 0 {
			p.number(uint64(c.Fence))
		}
		p.number(uint64(c.Verdict))
		p.text(c.By)
		p.text(c.Reason)
	case *StartRun: // not for how long it may wait
		p.number(30)
		for _, s := range []string{c.Org, c.Workflow, c.Agent, c.Flow, c.Purpose} {
			p.text(s)
		}
		for _, n := range []int64{int64(c.Priority), int64(c.TTL), int64(c.MaxHold)} {
			p.number(uint64(n))
		}
	case *RevertPattern:
		p.number(31)
		p.text(c.Name)
		p.number(c.Revision)
	}
	return uint64(p)
}

// print adds the body of a task to a fingerprint.
func (x *TaskSpec) print(p *print) {
	for _, s := range []string{x.Queue, x.Kind, string(x.Payload), x.Purpose, x.Group, string(x.Key)} {
		p.text(s)
	}
	p.claims(x.Claims)
	for _, n := range []int64{int64(x.Priority), int64(x.Delay), int64(x.Deadline), int64(x.MaxAttempts), int64(x.Backoff), int64(x.MaxBackoff)} {
		p.number(uint64(n))
	}
	p.flags(x.Message, x.Ask != nil)
	if x.Ask != nil {
		p.question(x.Ask)
	}
}

// question adds a question to a fingerprint.
func (p *print) question(q *interlock.Question) {
	p.text(q.Text)
	p.number(uint64(q.Limit))
	p.number(uint64(cmp.Or(q.OnLimit, interlock.Denied)))
	p.reads(q.Reads)
}

// print adds the body of an acknowledgement to its fingerprint.
func (c *Ack) print(p *print) {
	p.id(c.Lease)
	p.text(string(c.Result))
	commit := Commit{CommitRequest: c.CommitRequest}
	commit.print(p)
	p.number(uint64(len(c.Tasks)))
	for i := range c.Tasks {
		c.Tasks[i].print(p)
	}
}

// printMore adds what requests of the first version did not have, so that a body
// without any of it keeps its fingerprint.
func (c *Acquire) printMore(p *print) {
	extra := func(field, v uint64) {
		if v != 0 {
			p.number(field)
			p.number(v)
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
		p.text(c.Prefix)
	}
	if c.Group != "" {
		extra(4, 1)
		p.text(c.Group)
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

// claims adds a list of claims, with the zero Mode spelled out.
func (p *print) claims(list []interlock.Claim) {
	p.number(uint64(len(list)))
	for _, c := range list {
		if c.Mode == 0 {
			c.Mode = lockmode.X
		}
		p.text(string(c.Key))
		p.number(uint64(c.Mode))
		p.number(uint64(c.Count))
	}
}

// reads adds a list of reads.
func (p *print) reads(list []interlock.Read) {
	p.number(uint64(len(list)))
	for _, r := range list {
		p.text(string(r.Key))
		p.number(uint64(r.Version))
		p.flags(r.Absent, r.Present)
	}
}

// print is a running hash.
type print uint64

func (p *print) number(v uint64) {
	hi, lo := bits.Mul64(uint64(*p)^v^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	*p = print(hi ^ lo)
}

func (p *print) text(s string) {
	p.number(uint64(len(s)))
	for len(s) >= 8 {
		p.number(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
		s = s[8:]
	}
	var rest uint64
	for i := range len(s) {
		rest |= uint64(s[i]) << (8 * i)
	}
	p.number(rest)
}

func (p *print) flags(list ...bool) {
	var bits uint64
	for i, set := range list {
		if set {
			bits |= 1 << i
		}
	}
	p.number(bits)
}

func (p *print) id(id [16]byte) {
	p.number(binary.LittleEndian.Uint64(id[:8]))
	p.number(binary.LittleEndian.Uint64(id[8:]))
}

// print adds the body of a commit to its fingerprint.
func (c *Commit) print(p *print) {
	p.text(c.Agent)
	p.text(c.Flow)
	p.text(c.Note)
	p.number(uint64(c.AsOf))
	p.reads(c.Reads)
	p.number(uint64(len(c.Writes)))
	for i := range c.Writes {
		w := &c.Writes[i]
		p.text(string(w.Key))
		p.number(uint64(w.Op))
		p.text(cmp.Or(w.ContentType, interlock.JSONType))
		p.text(string(w.Body))
		p.number(uint64(w.Delta))
		p.flags(w.Min != nil, w.Max != nil)
		for _, bound := range []*int64{w.Min, w.Max} {
			if bound != nil {
				p.number(uint64(*bound))
			}
		}
	}
	for _, id := range c.Leases {
		p.id(id)
	}
}
