package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// taskCommand carries out a command about queues and tasks.
func (s *script) taskCommand(name string, w *words) error {
	switch name {
	case "queue":
		return s.tell(&engine.SetQueue{Head: s.head(w), Queue: queueOf(w)})
	case "switch":
		to := map[string]engine.Toggle{"yes": engine.On, "no": engine.Off}
		return s.tell(&engine.SwitchQueue{
			Head: s.head(w), Name: w.get("queue"), Paused: to[w.get("paused")], Drain: to[w.get("drain")],
		})
	case "submit":
		return s.submit(w)
	case "pull":
		return s.pull(w)
	case "ack":
		return s.ack(w)
	case "nack":
		c := &engine.Nack{Reason: w.get("reason"), Dead: w.has("dead"), Unseen: w.has("unseen")}
		c.Head, c.Lease = s.byFence(w)
		if c.Delay = -1; w.get("delay") != "now" {
			c.Delay = w.duration("delay")
		}
		switch w.get("jitter") {
		case "full":
			c.Jitter = math.MaxUint64
		case "half":
			c.Jitter = 1 << 63
		}
		return s.tell(c)
	case "ask":
		return s.askHuman(w)
	case "answer":
		return s.answerTask(w)
	case "follow":
		c := &engine.FollowTask{Head: s.head(w), Task: s.taskID(w.get("task")), Flow: s.flowIn(w), Attach: w.has("attach")}
		c.From = &listener{w.get("holder")}
		if c.Flow != "" {
			c.Head = s.actorHead(w)
		}
		return s.tell(c)
	case "unfollow":
		return s.tell(&engine.Leave{Head: s.head(w), Ticket: interlock.TicketID(s.taskID(w.get("task")))})
	}
	changes := map[string]engine.TaskChange{
		"cancel": engine.CancelTask, "replay": engine.ReplayTask, "reschedule": engine.RescheduleTask,
		"discard": engine.DiscardTask,
	}
	return s.tell(&engine.ChangeTask{
		Head: s.head(w), Task: s.taskID(w.get("task")), Change: changes[name], Delay: w.duration("delay"),
		Reason: w.get("reason"),
	})
}

func queueOf(w *words) interlock.TaskQueue {
	q := interlock.TaskQueue{
		Name: w.get("name"), Paused: w.has("paused"), Drain: w.has("drain"), MaxAttempts: int(w.number("max_attempts")),
		Backoff: w.duration("backoff"), MaxBackoff: w.duration("max_backoff"), TTL: w.duration("ttl"),
		Grace:   w.duration("grace"),
		MaxHold: w.duration("max_hold"), Stall: w.duration("stall"), MaxRunning: int(w.number("max_running")),
		MaxTasks: int(w.number("max_tasks")),
	}
	for _, x := range w.list {
		if x.key == "share" {
			parts := strings.Split(x.value, ":")
			q.Groups = append(
				q.Groups, interlock.Share{Group: parts[0], Weight: int(parseNumber(parts[1])), Max: int(parseNumber(parts[2]))},
			)
		}
	}
	w.used["share"] = true
	for _, list := range []struct {
		key  string
		into *[]string
	}{{"pull", &q.Pull}, {"submit", &q.Submit}, {"admin", &q.Admin}} {
		if w.has(list.key) {
			*list.into = strings.Split(w.get(list.key), ",")
		}
	}
	if w.has("approvers") {
		q.Approvers = strings.Split(w.get("approvers"), ",")
	}
	q.MinApprovals = int(w.number("min_approvals"))
	q.Approval, _ = interlock.ParseApprovalPolicy(w.get("approval"))
	return q
}

func (s *script) submit(w *words) error {
	c := &engine.Submit{Head: s.head(w), Flow: s.flowIn(w), Attach: w.has("attach"), Task: engine.TaskSpec{
		ID: s.id(), TaskSpec: interlock.TaskSpec{
			Queue: w.get("queue"), Kind: w.get("kind"), Payload: []byte(w.get("payload")), Purpose: w.get("purpose"),
			Group:    w.get("group"),
			Priority: int(w.number("priority")), Delay: w.duration("delay"), Deadline: w.duration("deadline"),
			MaxAttempts: int(w.number("max_attempts")), Backoff: w.duration("backoff"), MaxBackoff: w.duration("max_backoff"),
			Message: w.has("message"), Key: interlock.Key(w.get("message")),
		},
	}}
	if w.has("ask") {
		q := s.questionOf(w.get("ask"), w)
		c.Task.Ask = &q
	}
	s.asker(&c.Head, &c.Agent, w)
	var err error
	if c.Task.Claims, err = claimsIn(w); err != nil {
		return err
	}
	return s.tell(c)
}

// pull asks for tasks; with again, under the ids of the pull before.
func (s *script) pull(w *words) error {
	if w.has("again") {
		c := *s.pulled
		c.Attach = c.Attach && !w.has("once")
		s.asker(&c.Head, &c.Agent, w)
		return s.tell(&c)
	}
	c := &engine.Pull{
		Head: s.head(w), ID: s.id(), Queue: w.get("queue"), Max: int(w.number("max")), TTL: w.duration("ttl"),
		Attach: !w.has("once"),
	}
	if !w.has("max") {
		c.Max = 1
	}
	s.asker(&c.Head, &c.Agent, w)
	for range c.Max {
		c.Leases = append(c.Leases, s.id())
	}
	s.pulled = c
	return s.tell(c)
}

func (s *script) ack(w *words) error {
	commit := engine.Commit{}
	s.commitWords(&commit, w)
	c := &engine.Ack{Result: []byte(w.get("result")), CommitRequest: interlock.CommitRequest{
		Note: w.get("note"), Reads: commit.Reads, Writes: commit.Writes,
	}}
	c.Head, c.Lease = s.byFence(w)
	for _, x := range w.list {
		if x.key == "message" {
			key, body, _ := strings.Cut(x.value, "=")
			c.Tasks = append(c.Tasks, engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{
				Message: true, Key: interlock.Key(key), Payload: []byte(body),
			}})
		}
		if x.key == "then" {
			queue, key, _ := strings.Cut(x.value, ":")
			spec := engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{Queue: queue}}
			if key != "" {
				spec.Claims = []interlock.Claim{{Key: interlock.Key(key)}}
			}
			c.Tasks = append(c.Tasks, spec)
		}
	}
	w.used["then"], w.used["message"] = true, true
	return s.tell(c)
}

// taskID returns the id of a task by the name that the script has for it.
func (s *script) taskID(name string) interlock.TaskID {
	for i, id := range s.tasks {
		if name == fmt.Sprintf("q%d", i+1) {
			return id
		}
	}
	return counted(888_888)
}

func (s *script) taskName(id interlock.TaskID) string {
	i := slices.Index(s.tasks, id)
	if i < 0 {
		s.tasks = append(s.tasks, id)
		i = len(s.tasks) - 1
	}
	return fmt.Sprintf("q%d", i+1)
}

// learnTask notes the names of tasks and of their leases.
func (s *script) learnTask(ev *record.Event) {
	switch ev.Kind {
	case record.TaskSubmitted:
		s.taskName(ev.ID)
	case record.TaskDispatched:
		l := &lease{id: ev.ID, ns: ev.Namespace, claims: claimsText(ev.Claims), who: ev.Agent, fence: ev.Fence}
		for _, a := range s.actors {
			if a.num == ev.Session && ev.Session != 0 {
				l.actor = a
			}
		}
		s.nums[ev.Num], s.leases[ev.Fence] = l, l
	}
}

func (s *script) printTaskEvent(ev *record.Event) {
	name := s.taskName(ev.ID)
	state := interlock.TaskState(ev.Op)
	why := ""
	if words := prose.Sentence(ev.Why()); words != "" {
		why = fmt.Sprintf(" %q", words)
	}
	switch {
	case ev.Kind == record.TaskForgotten:
		s.printf("%s is forgotten", name)
	case ev.Kind == record.ApprovalRequested:
		s.printf("%s asks", name)
	case ev.Kind == record.ApprovalDecided:
		s.printAnswered(ev)
	case ev.Kind == record.TaskSubmitted:
		s.printf("%s is %v", name, state)
	case ev.Kind == record.AttemptFailed && state == interlock.TaskScheduled:
		s.printf("attempt %d at %s failed (%v)%s, again in %v", ev.Generation, name, ev.Reason, why, ev.Due)
	case ev.Kind == record.AttemptFailed:
		s.printf("attempt %d at %s failed (%v)%s, it is %v", ev.Generation, name, ev.Reason, why, state)
	case state == interlock.TaskScheduled:
		s.printf("%s is scheduled in %v", name, ev.Due)
	default:
		s.printf("%s is %v%s", name, state, why)
	}
}

// printTasks writes the effects about tasks that go beyond the events: what a worker got, and
// reports to callers that did not change the task.
func (s *script) printTasks(who string, e *engine.Effect) {
	for i := range e.Handed {
		h := &e.Handed[i]
		text := fmt.Sprintf("handed %s to %s fence=%d attempt=%d", s.taskName(h.Task.ID), who, h.Lease.Fence, h.Task.Attempt)
		if len(h.Task.Claims) > 0 {
			text += " " + claimsText(h.Task.Claims)
		}
		if len(h.Task.Payload) > 0 {
			text += fmt.Sprintf(" payload=%s", h.Task.Payload)
		}
		if h.Task.Approval != nil {
			text += approvalText(h.Task.Approval)
		}
		if h.Lease.MaxHoldIn > 0 {
			text += fmt.Sprintf(" max_hold=%v", since(s.now.Add(h.Lease.MaxHoldIn)))
		}
		if h.Lease.State != interlock.Held {
			text += fmt.Sprintf(" state=%v", h.Lease.State)
		}
		s.printf("%s", text)
		s.printApproval(&h.Task)
		for _, d := range h.Documents {
			s.printf("  %s %s", d.Key, documentText(&d, false))
		}
		for _, n := range h.Lease.Notes {
			s.printf("  note at %s by %s fence=%d %q", n.Key, n.Agent, n.Fence, n.Text)
		}
	}
	for i := range e.Tasks {
		s.printf("told %s: %s", who, s.taskLine(&e.Tasks[i]))
	}
}

func (s *script) taskLine(t *engine.Task) string {
	text := fmt.Sprintf("%s %v", s.taskName(t.ID), t.State)
	if t.Attempt > 0 {
		text += fmt.Sprintf(" attempt=%d", t.Attempt)
	}
	if t.Due > 0 {
		text += fmt.Sprintf(" due=%v", since(s.now.Add(t.Due)))
	}
	if t.Deadline > 0 {
		text += fmt.Sprintf(" deadline=%v", since(s.now.Add(t.Deadline)))
	}
	if len(t.Result) > 0 {
		text += fmt.Sprintf(" result=%s", t.Result)
	}
	if t.Position > 0 {
		text += fmt.Sprintf(" position=%d", t.Position)
	}
	if t.Barred {
		text += " barred"
	}
	if t.Blocker != "" {
		text += fmt.Sprintf(" behind %s", t.Blocker)
	}
	if t.Approval != nil {
		text += approvalText(t.Approval)
	}
	if t.Reason != nil {
		text += fmt.Sprintf(" reason=%q", prose.Sentence(t.Reason))
	}
	return text
}

func barText(b engine.Bar) string {
	if b.Pattern == "" {
		return "its group"
	}
	return fmt.Sprintf("pattern %s in mode %v", b.Pattern, b.Mode)
}

func (s *script) logLine(x *engine.LogEntry) string {
	text := fmt.Sprintf("%d %s %v", x.Seq, s.taskName(x.Message), x.State)
	for _, part := range []struct{ name, value string }{
		{"kind", x.Kind},
		{"body", string(x.Body)},
		{"from", s.senderName(x.Sender)},
		{"sent by", x.Agent},
		{"reply", string(x.Reply)},
		{"reason", prose.Sentence(x.Reason)},
	} {
		if part.value != "" {
			text += fmt.Sprintf(" %s=%s", part.name, part.value)
		}
	}
	if x.Worker != "" {
		text += fmt.Sprintf(" decided by %s in attempt %d fence=%d", x.Worker, x.Attempt, x.Fence)
	}
	text += ", left"
	if x.Changed {
		text += " changed"
	}
	return text + fmt.Sprintf(" %s age=%v", documentText(&x.Document, false), x.Age)
}

// senderName returns the script's name for the sender that determines the order of messages.
func (s *script) senderName(sender string) string {
	if public, ok := strings.CutPrefix(sender, "session:"); ok {
		for _, a := range s.actors {
			if a.public == public {
				return "session:" + a.name
			}
		}
	}
	return sender
}

// showTasks writes what can be looked at.
func (s *script) showTasks(ns interlock.Namespace, w *words) error {
	switch {
	case w.has("task"):
		t, ok := s.e.Task(ns, s.taskID(w.get("task")))
		if !ok {
			s.printf("no task")
			return nil
		}
		text := s.taskLine(&t)
		if t.Sender != "" {
			text += " from " + s.senderName(t.Sender)
		}
		s.printf("%s", text)
		s.printApproval(&t)
		for _, a := range t.Attempts {
			s.printf(
				"  attempt %d by %s fence=%d %s %q held=%v age=%v", a.Number, a.Agent, a.Fence, a.EndedBy,
				prose.Sentence(a.Reason), a.Held, a.Age,
			)
		}
	case w.has("approvals"):
		s.showApprovals(ns, w)
	case w.has("stuck"):
		l := &engine.HeldBack{Namespace: ns, Key: interlock.Key(w.get("stuck")), Agent: w.get("holder")}
		for !l.Look(s.e) {
		}
		for i := range l.Rows {
			s.printf("%s, and %d behind it", s.taskLine(&l.Rows[i].Task), l.Rows[i].Behind)
			for _, b := range l.Rows[i].Bars {
				s.printf("  %d idle kept from it by %s", b.Workers, barText(b))
			}
		}
		if l.More {
			s.printf("and more")
		}
	case w.has("tasks"):
		l := &engine.TaskList{Namespace: ns, Queue: w.get("queue"), Limit: int(w.number("limit"))}
		l.State, _ = interlock.ParseTaskState(w.get("in"))
		if w.has("on") {
			l.After = s.listed
		}
		for !l.Look(s.e) {
		}
		s.listed = l.Next
		for i := range l.Rows {
			s.printf("%s", s.taskLine(&l.Rows[i]))
		}
		if l.More {
			s.printf("and more")
		}
	case w.has("log"):
		entries, first, next := s.e.Log(ns, interlock.Key(w.get("log")), uint64(w.number("from")), int(w.number("limit")))
		for i := range entries {
			s.printf("%s", s.logLine(&entries[i]))
		}
		s.printf("kept from %d, next %d", first, next)
		if !s.blind {
			return s.m.checkLogs(s.e, ns, nil)
		}
	default:
		q, ok := s.e.QueueStatus(ns, w.get("queue"))
		if !ok {
			s.printf("no queue")
			return nil
		}
		asking := ""
		if q.Asking > 0 {
			asking = fmt.Sprintf(" asking=%d", q.Asking)
		}
		s.printf(
			"%s scheduled=%d waiting=%d running=%d%s dead=%d idle=%d oldest=%v", q.Name, q.Scheduled, q.Waiting, q.Running,
			asking, q.Dead, q.Idle, q.Oldest,
		)
	}
	return nil
}
