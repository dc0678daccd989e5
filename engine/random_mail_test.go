package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// message turns a task into a message, to a key that has a single writer at times.
func (p *player) message(x engine.TaskSpec, r uint32) engine.TaskSpec {
	x.Message, x.Queue, x.Claims = true, "", nil
	x.Key = among(r, interlock.Key("w:1"), "w:1", "w:1", "w:2", "ww-01", "b", "c", "p", "a")
	switch r >> 8 % 64 {
	case 0:
		x.Key = "w://1"
	case 1:
		x.Queue = "q"
	case 2:
		x.Claims = []interlock.Claim{{Key: x.Key}}
	case 3:
		x.Message = false
	case 4, 5, 6, 7: // no message, and no more to its worker than to others
		x.Message, x.Queue, x.Claims, x.Key = false, "q", []interlock.Claim{{Key: x.Key, Mode: interlock.Exclusive}}, ""
	}
	return x
}

// send sends a message, to a mailbox that is there, mostly.
func (p *player) send(o *op) error {
	c := &engine.Submit{Flow: among(o.r[1], "", "sub"), Attach: o.r[3]%2 == 0}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[1]>>8%2 > 0 {
		c.Head, c.Attach = p.in(s), o.r[3]%4 == 0
	} else {
		c.Namespace, c.Agent = among(
			o.r[0], firstNamespace, firstNamespace, firstNamespace, otherNamespace,
		), among(o.r[1]>>12, "ann", "ann", "bob", "")
	}
	c.Actor, c.Task = among(o.r[3]>>12, "", "", "", "web"), p.message(p.spec(o, c.Namespace, o.r[2]), o.r[5])
	if err := p.mailbox(c.Namespace, o.r[4]); err != nil {
		return err
	}
	c.Link = uint64(1 + o.r[3]>>8%3)
	if o.r[3]>>16%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.submitted = append(p.submitted, *c)
	}
	return p.step(c)
}

// mailbox makes a queue the writer of keys, mostly if there is none.
func (p *player) mailbox(ns interlock.Namespace, r uint32) error {
	if p.m.writer(ns, "w:1") != "" && r%16 > 0 || r>>8%16 == 0 {
		return nil
	}
	head := engine.Head{Namespace: ns}
	queue := among(r>>16, "q", "q", "q", "r")
	if p.m.queue(ns, queue) == nil && r>>20%8 > 0 {
		if err := p.step(&engine.SetQueue{
			Head: head, Queue: interlock.TaskQueue{Name: queue, Backoff: among(r>>24, 0, time.Second)},
		}); err != nil {
			return err
		}
	}
	if len(p.m.patterns[ns]) == 0 {
		if err := p.step(&engine.SetPattern{
			Head: head, Pattern: interlock.Pattern{Name: "zz", Shape: "{name}/{path...}"},
		}); err != nil {
			return err
		}
	}
	return p.step(&engine.SetPattern{Head: head, Pattern: interlock.Pattern{
		Name: "w", Shape: "w:{id:int}", Aliases: []string{"ww-{id:int}"}, Write: interlock.WriteSingle, WriterQueue: queue,
	}})
}

// passed returns the messages that are dead or cancelled, and ahead of others of their
// sender if they are taken up again.
func (p *player) passed() (list []*task) {
	for _, t := range p.m.tasks {
		later := func(o *task) bool {
			return o.stands() && o.ns == t.ns && o.sender == t.sender && o.mailbox() == t.mailbox() && o.num > t.num
		}
		if t.sender != "" && t.state > interlock.TaskDone && slices.ContainsFunc(p.m.tasks, later) {
			list = append(list, t)
		}
	}
	return list
}

// meetMail counts what a run has come across with messages.
func (m *model) meetMail(met map[string]int) {
	for _, t := range m.tasks {
		if t.spec.Message {
			kind, _, _ := strings.Cut(t.sender, ":")
			met["message of "+kind]++
		}
		if t.state == interlock.TaskWaiting && !t.stands() {
			met["message held back"]++
		}
		if t.gaveWay {
			met["message gave way"]++
		}
	}
	for _, x := range m.logs {
		met["message logged "+x.State.String()]++
		if x.Changed {
			met["message changed its key"]++
		}
	}
}
