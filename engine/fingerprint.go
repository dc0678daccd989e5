package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// A printer is a command with a fingerprint: one that is remembered under its request id.
type printer interface {
	// print adds the body to a fingerprint.
	print(p *record.Fingerprint)
}

// fingerprint tells bodies under one request id apart. It is in journals, so it
// must never change.
func fingerprint(cmd printer) uint64 {
	var p record.Fingerprint
	cmd.print(&p)
	return uint64(p)
}

func (c *Acquire) print(p *record.Fingerprint) {
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
	c.printMore(p)
}

func (c *Release) print(p *record.Fingerprint) {
	p.Number(2)
	p.ID(c.Lease)
	p.Text(c.Outcome)
	p.Text(c.Note)
	if c.Run { // the first version had none
		p.Flags(c.Run)
	}
}

func (c *Leave) print(p *record.Fingerprint) {
	p.Number(3)
	p.ID(c.Ticket)
}

func (c *Revoke) print(p *record.Fingerprint) {
	p.Number(4)
	p.Text(string(c.Key))
	p.Number(uint64(c.Fence))
	p.Text(c.Reason)
}

func (c *OpenSession) print(p *record.Fingerprint) {
	p.Number(5)
	p.Text(c.Agent)
	p.Number(uint64(c.TTL))
}

func (c *Arrive) print(p *record.Fingerprint) {
	p.Number(7)
	p.ID(c.Lease)
	p.Number(uint64(c.MaxWait))
}

func (c *Convert) print(p *record.Fingerprint) {
	p.Number(6)
	p.ID(c.Lease)
	p.Claims(c.Claims)
	p.Number(uint64(c.MaxWait))
	p.Number(uint64(c.OnConflict))
}

func (c *Declare) print(p *record.Fingerprint) {
	p.Number(10)
	for _, s := range []string{c.Agent, c.Flow, c.Purpose, c.On.Session, c.On.Agent, c.On.Flow} {
		p.Text(s)
	}
	p.Number(uint64(c.MaxWait))
}

func (c *Park) print(p *record.Fingerprint) {
	p.Number(9)
	p.ID(c.Lease)
	p.Flags(c.Free, c.Keep)
	p.Number(uint64(c.For))
	p.Text(c.Reason)
}

func (c *Resume) print(p *record.Fingerprint) {
	p.Number(8)
	p.ID(c.Lease)
	p.Text(c.Flow)
	p.Number(uint64(c.MaxWait))
	p.Number(uint64(c.OnConflict))
	if c.Unapproved {
		p.Number(1)
	}
}

func (c *SetPattern) print(p *record.Fingerprint) {
	p.Number(11)
	p.Text(string(record.AppendPattern(nil, &c.Pattern)))
}

func (c *DropPattern) print(p *record.Fingerprint) {
	p.Number(12)
	p.Text(c.Name)
}

func (c *Configure) print(p *record.Fingerprint) {
	p.Number(13)
	p.Text(string(record.AppendSettings(nil, &c.Settings, record.RuleFor(&c.Settings))))
}

func (c *Commit) print(p *record.Fingerprint) {
	p.Number(14)
	c.printBody(p)
}

func (c *ClaimEffect) print(p *record.Fingerprint) {
	p.Number(15)
	p.Text(c.Agent)
	p.Text(c.Flow)
	p.Text(c.Action)
	p.ID(c.Lease)
	p.Number(uint64(c.TTL))
}

func (c *SettleEffect) print(p *record.Fingerprint) {
	p.Number(16)
	p.ID(c.ID)
	p.Text(string(c.Digest[:]))
	p.Number(uint64(c.State))
	p.Text(c.Result)
	p.Text(c.Reason)
}

func (c *SetQueue) print(p *record.Fingerprint) {
	p.Number(17)
	p.Text(string(record.AppendQueue(nil, &c.Queue)))
}

func (c *SwitchQueue) print(p *record.Fingerprint) {
	p.Number(32)
	p.Text(c.Name)
	p.Number(uint64(c.Paused))
	p.Number(uint64(c.Drain))
}

func (c *DropQueue) print(p *record.Fingerprint) {
	p.Number(18)
	p.Text(c.Name)
}

func (c *Submit) print(p *record.Fingerprint) {
	p.Number(19)
	p.Text(c.Agent)
	p.Text(c.Flow)
	c.Task.print(p)
}

func (c *Ack) print(p *record.Fingerprint) {
	p.Number(20)
	c.printBody(p)
}

func (c *Nack) print(p *record.Fingerprint) {
	p.Number(21)
	p.ID(c.Lease)
	p.Text(c.Reason)
	p.Number(uint64(c.Delay))
	p.Flags(c.Dead, c.Unseen)
}

func (c *ChangeTask) print(p *record.Fingerprint) {
	p.Number(22)
	p.ID(c.Task)
	p.Number(uint64(c.Change))
	p.Number(uint64(c.Delay))
	p.Text(c.Reason)
}

func (c *AskHuman) print(p *record.Fingerprint) {
	p.Number(23)
	p.ID(c.Lease)
	p.Question(&c.Question)
}

func (c *Answer) print(p *record.Fingerprint) {
	p.Number(24)
	p.ID(c.Task)
	if c.Fence != 0 {
		p.Number(uint64(c.Fence))
	}
	p.Number(uint64(c.Verdict))
	p.Text(c.By)
	p.Text(c.Reason)
}

// print leaves out for how long the run may wait.
func (c *StartRun) print(p *record.Fingerprint) {
	p.Number(30)
	for _, s := range []string{c.Org, c.Workflow, c.Agent, c.Flow, c.Purpose} {
		p.Text(s)
	}
	for _, n := range []int64{int64(c.Priority), int64(c.TTL), int64(c.MaxHold)} {
		p.Number(uint64(n))
	}
}

func (c *RevertPattern) print(p *record.Fingerprint) {
	p.Number(31)
	p.Text(c.Name)
	p.Number(c.Revision)
}

// print adds the body of a task to a fingerprint.
func (x *TaskSpec) print(p *record.Fingerprint) {
	for _, s := range []string{x.Queue, x.Kind, string(x.Payload), x.Purpose, x.Group, string(x.Key)} {
		p.Text(s)
	}
	p.Claims(x.Claims)
	for _, n := range []int64{
		int64(x.Priority), int64(x.Delay), int64(x.Deadline), int64(x.MaxAttempts), int64(x.Backoff), int64(x.MaxBackoff),
	} {
		p.Number(uint64(n))
	}
	p.Flags(x.Message, x.Ask != nil)
	if x.Ask != nil {
		p.Question(x.Ask)
	}
}

// printBody adds the body of an acknowledgement to its fingerprint.
func (c *Ack) printBody(p *record.Fingerprint) {
	p.ID(c.Lease)
	p.Text(string(c.Result))
	commit := Commit{CommitRequest: c.CommitRequest}
	commit.printBody(p)
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
	extra(11, uint64(c.MaxPosition))
}

// printBody adds the body of a commit to its fingerprint.
func (c *Commit) printBody(p *record.Fingerprint) {
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
