package engine_test

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// question chooses what a person is to decide.
func (p *player) question(ns interlock.Namespace, r uint32) interlock.Question {
	q := interlock.Question{
		Text:    among(r, "may it?", "may it?", "may it?", "may it?", "may it?", "may it?", "may it?", ""),
		Limit:   among(r>>3, 0, 0, 2*time.Second, 8*time.Second, 30*time.Second),
		OnLimit: among(r>>6, 0, interlock.Approved, interlock.Denied),
	}
	v := p.m.version(ns)
	for i := range int(r >> 9 % 4) {
		bits := r >> (12 + 5*i)
		read := interlock.Read{Key: p.keys[int(bits)%len(p.keys)]}
		switch read.Version = p.m.documentNow(ns, p.m.spell(ns, read.Key)).Version; bits >> 3 % 4 {
		case 0:
			read.Version = among(bits, v, v, v-min(1, v), v+1)
		case 1:
			read.Version, read.Absent = 0, true
		}
		q.Reads = append(q.Reads, read)
	}
	return q
}

// askHuman has a worker ask a person about its task.
func (p *player) askHuman(o *op) error {
	r := p.attempt(o)
	if r == nil {
		return nil
	}
	c := &engine.AskHuman{Head: p.head(r, o.r[2]), Lease: interlock.LeaseID(r.ask.ID), Question: p.question(r.ns, o.r[3])}
	c.Actor = among(o.r[4], "", "", "web")
	if o.r[4]>>8%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids+uint64(len(p.trace)))
		p.questions = append(p.questions, *c)
	}
	return p.step(c)
}

// answer has a person answer, mostly what is asked, or sends a question again.
func (p *player) answer(o *op) error {
	if c, ok := pick(o.r[5], p.questions); ok && o.r[4]%12 == 0 && !p.isGone(c.Namespace, c.Session) {
		c.From = nil
		return p.step(&c)
	}
	if r, ok := pick(o.r[0], p.m.inPhase(parked)); ok && o.r[4]%3 == 1 {
		c := &engine.Answer{
			Head: engine.Head{Namespace: r.ns}, Fence: r.parkFence, Verdict: among(o.r[2], interlock.Approved, interlock.Denied),
			By: among(o.r[2]>>8, "", "eve", "eve"), Reason: among(o.r[2]>>16, "", "so"),
		}
		c.Actor = among(o.r[3], "", "web", "ops", "blue", "webhook:a", "webhook:b")
		if o.r[3]>>8%16 == 0 {
			c.Fence++
		}
		if o.r[3]>>16%4 == 0 {
			c.RequestID = fmt.Sprintf("r%d", p.ids+uint64(len(p.trace)))
		}
		return p.step(c)
	}
	var list []*task
	for _, t := range p.m.tasks {
		if t.state == interlock.TaskAsking || t.question != nil && o.r[1]%8 == 0 || o.r[1]%32 == 1 {
			list = append(list, t)
		}
	}
	t, ok := pick(o.r[0], list)
	if !ok {
		return nil
	}
	c := &engine.Answer{
		Head: engine.Head{Namespace: t.ns}, Task: t.id,
		Verdict: among(o.r[2], interlock.Approved, interlock.Approved, interlock.Denied),
		By:      among(o.r[2]>>8, "", "eve", "eve"), Reason: among(o.r[2]>>16, "", "so"),
	}
	c.Actor = among(o.r[3], "", "web", "ops", "blue", "webhook:a", "webhook:b")
	if o.r[3]>>8%32 == 0 {
		c.Verdict = 0
	}
	if o.r[3]>>16%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids+uint64(len(p.trace)))
	}
	return p.step(c)
}
