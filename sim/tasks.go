package sim

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

var taskDeeds = []agentAction{
	{24, (*agent).submit},
	{24, (*agent).pull},
	{24, (*agent).ack},
	{6, (*agent).nack},
	{2, (*agent).askHuman},
	{4, (*agent).answerTask},
	{3, (*agent).changeTask},
	{4, (*agent).followTask},
	{1, (*agent).setQueue},
}

const (
	queueName   = "jobs"
	mailQueue   = "mail"
	poolSize    = 3
	rateBurst   = 4
	rateCount   = 3 // so that a tick is no whole number of nanoseconds
	ratePer     = time.Second
	mailCap     = 2
	mailboxes   = 6
	runCapacity = 2
	teamSize    = 4
	groupMax    = 2 // of the capped group
	groupMin    = 1 // kept free for the other one
	cappedGroup = "red"
	ownGroup    = "blue"
)

// settings are an operator's settings for each namespace before the agents begin.
func (w *world) settings() []func() engine.Command {
	pattern := func(p interlock.Pattern) func() engine.Command {
		return func() engine.Command { return &engine.SetPattern{Pattern: p} }
	}
	list := []func() engine.Command{
		func() engine.Command { return &engine.Configure{Settings: interlock.Settings{}} },
		func() engine.Command {
			return &engine.SetQueue{Queue: interlock.TaskQueue{Name: queueName, TTL: 4 * time.Second, MaxAttempts: 4}}
		},
		func() engine.Command {
			return &engine.SetQueue{
				Queue: interlock.TaskQueue{
					Name: mailQueue, TTL: 6 * time.Second, MaxAttempts: 3, MaxRunning: mailCap, Backoff: time.Second,
					Pull: w.mayPullMail(),
				},
			}
		},
		pattern(interlock.Pattern{Name: "pool", Shape: "pool:{id}", Capacity: poolSize}),
		pattern(interlock.Pattern{
			Name: "team", Shape: "team:{id}", Capacity: teamSize,
			Groups: []interlock.Group{{Name: cappedGroup, Max: groupMax}, {Name: ownGroup, Min: groupMin}},
		}),
		pattern(interlock.Pattern{Name: "rate", Shape: "rate:{id}", Rate: rateCount, Per: ratePer, Burst: rateBurst}),
		pattern(interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: runCapacity}),
		pattern(interlock.Pattern{Name: "box", Shape: "box:{id}", Write: interlock.WriteSingle, WriterQueue: mailQueue}),
	}
	if w.plan.credentials {
		rules := []interlock.Rule{{Principal: interlock.GroupPrefix + vaultGroup}}
		list = append(
			list,
			pattern(interlock.Pattern{Name: "vault", Shape: "vault:{id}/{path...}", Allow: rules, Write: interlock.WriteLease}),
		)
	}
	return list
}

func (a *agent) submit() {
	t := engine.TaskSpec{TaskSpec: interlock.TaskSpec{
		Queue: queueName, Kind: "k", Payload: []byte(`{"n":1}`), Priority: []int{0, 0, 1}[a.rng(3)],
	}}
	if a.rng(2) == 0 {
		t.Claims = []interlock.Claim{{Key: interlock.Key(fmt.Sprintf("job:%d", a.rng(3)))}}
	}
	if a.w.plan.credentials && a.rng(4) == 0 {
		t.Claims = append(t.Claims, interlock.Claim{Key: interlock.Key(fmt.Sprintf("vault:%d", a.rng(2)))})
	}
	if a.rng(6) == 0 {
		t.Delay = 2 * time.Second
	}
	if a.rng(6) == 0 {
		t.Deadline = 10 * time.Second
	}
	if a.rng(3) == 0 {
		t = engine.TaskSpec{TaskSpec: interlock.TaskSpec{
			Message: true, Key: interlock.Key(fmt.Sprintf("box:%d", a.rng(mailboxes))), Kind: "k", Payload: []byte(`{"n":1}`),
		}}
	}
	claims := t.Claims
	attach, name := a.rng(3) == 0, a.bareName()
	a.send("submit a task", func() engine.Command {
		again := t
		again.ID = a.w.id()
		again.Claims = append([]interlock.Claim(nil), claims...)
		return &engine.Submit{Agent: name, Task: again, Attach: attach}
	}, func(eff *engine.Effect, _ interlock.At) {
		a.ended(eff)
		if eff.Outcome == engine.Done && len(eff.Tasks) == 1 && len(a.tasks) < 20 {
			a.tasks = append(a.tasks, eff.Tasks[0].ID)
		}
	})
}

func (a *agent) pull() {
	c := engine.Pull{
		ID: a.w.id(), Queue: []string{queueName, queueName, mailQueue}[a.rng(3)], Max: 1 + a.rng(2), Agent: a.bareName(),
		Attach: a.rng(2) == 0,
	}
	for range c.Max {
		c.Leases = append(c.Leases, a.w.id())
	}
	session := a.session
	a.send("pull from "+c.Queue, func() engine.Command {
		again := c
		again.Leases = append([][16]byte(nil), c.Leases...)
		return &again
	}, func(eff *engine.Effect, _ interlock.At) {
		a.ended(eff)
		if eff.Outcome != engine.Granted || a.session != session {
			return
		}
		for i := range eff.Handed {
			if h := a.hold(&eff.Handed[i].Lease); h != nil {
				h.task = true
			}
		}
	})
}

// attempt draws one of the tasks that the agent works at, or nil.
func (a *agent) attempt() *heldLease {
	for _, h := range a.leases {
		if h.task {
			return h
		}
	}
	return nil
}

func (a *agent) ack() {
	h := a.attempt()
	if h == nil {
		return
	}
	a.lose(h.id)
	writes := []interlock.Write{{Key: "done", Op: interlock.Add, Delta: 1}}
	if a.w.plan.credentials && a.rng(4) == 0 {
		writes = append(writes, a.write())
	}
	a.send(fmt.Sprintf("ack fence %d", h.fence), func() engine.Command {
		return &engine.Ack{Lease: h.id, Result: []byte(`1`), CommitRequest: interlock.CommitRequest{
			Writes: append([]interlock.Write(nil), writes...),
		}}
	}, nil)
}

func (a *agent) nack() {
	h := a.attempt()
	if h == nil {
		return
	}
	a.lose(h.id)
	jitter, dead := a.w.rng.Uint64(), a.rng(6) == 0
	a.send(fmt.Sprintf("nack fence %d", h.fence), func() engine.Command {
		return &engine.Nack{Lease: h.id, Reason: "failed", Jitter: jitter, Dead: dead}
	}, nil)
}

func (a *agent) askHuman() {
	h := a.attempt()
	if h == nil {
		return
	}
	a.lose(h.id)
	a.send(fmt.Sprintf("ask a person, fence %d", h.fence), func() engine.Command {
		return &engine.AskHuman{
			Lease: h.id, Question: interlock.Question{Text: "may I?", Limit: 8 * time.Second, OnLimit: interlock.Approved},
		}
	}, nil)
}

func (a *agent) task() (interlock.TaskID, bool) {
	other := a.w.agents[a.rng(len(a.w.agents))]
	if len(other.tasks) == 0 || other.namespace != a.namespace {
		return interlock.TaskID{}, false
	}
	return other.tasks[a.rng(len(other.tasks))], true
}

func (a *agent) answerTask() {
	if id, ok := a.task(); ok {
		verdict := interlock.Verdict(1 + a.rng(2))
		a.send(
			"answer a question", func() engine.Command { return &engine.Answer{Task: id, Verdict: verdict, By: "a person"} },
			nil,
		)
	}
}

func (a *agent) changeTask() {
	if id, ok := a.task(); ok {
		change := engine.TaskChange(1 + a.rng(4))
		a.send(
			"change a task",
			func() engine.Command { return &engine.ChangeTask{Task: id, Change: change, Reason: "by the operator"} }, nil,
		)
	}
}

func (a *agent) followTask() {
	if id, ok := a.task(); ok {
		a.send("follow a task", func() engine.Command { return &engine.FollowTask{Task: id} }, nil)
	}
}

func (a *agent) setQueue() {
	limit := a.rng(3)
	a.send("set a queue", func() engine.Command {
		return &engine.SetQueue{
			Queue: interlock.TaskQueue{Name: queueName, TTL: 4 * time.Second, MaxAttempts: 4, MaxRunning: limit},
		}
	}, nil)
}
