package engine_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// pushed begins the name of a listener that is a session's receiver.
const pushed = "push:"

func (s *script) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.target > s.now {
		text = fmt.Sprintf("%v: %s", since(s.now), text)
	}
	s.lines = append(s.lines, strings.TrimRight(text, " "))
}

// afterTick writes what came of one Tick of an advance.
func (s *script) afterTick() { s.print(nil) }

// print writes the result of the last step: first the events, then the effects. What both
// contain is written once.
func (s *script) print(cmd engine.Command) {
	before := len(s.lines)
	told := map[[16]byte]bool{}
	for i := range s.last.Effects {
		if e := &s.last.Effects[i]; e.Outcome == engine.Granted {
			told[e.Lease.ID] = true
		}
	}
	for i := range s.last.Events {
		s.learn(cmd, &s.last.Events[i])
		s.printEvent(&s.last.Events[i], told)
	}
	for i := range s.last.Effects {
		if e := &s.last.Effects[i]; e.To != nil {
			s.printEffect(cmd, e, len(s.lines) == before)
		}
	}
	if s.refusal != "" {
		s.printf("%s", s.refusal)
		s.refusal = ""
	}
}

// learn notes the names of a new request or grant.
func (s *script) learn(cmd engine.Command, ev *record.Event) {
	s.learnTask(ev)
	switch ev.Kind {
	case record.Queued, record.Granted:
		l := &lease{id: ev.ID, ns: ev.Namespace, claims: anyText(ev.Any) + claimsText(ev.Claims), who: ev.Agent}
		for _, a := range s.actors {
			if a.num == ev.Session && ev.Session != 0 {
				l.actor, l.who = a, a.name
			}
		}
		l.who = s.flowName(l.who, ev.Flow)
		for _, a := range s.actors {
			if a.num == ev.Target && ev.Target != 0 {
				l.claims = "wait for " + s.flowName(a.name, ev.TargetFlow)
			}
		}
		if base := s.nums[ev.Base]; base != nil {
			l.actor, l.who = base.actor, base.who
		}
		s.nums[ev.Num] = l
		if ev.Kind == record.Queued {
			s.ticket(l.id)
		}
	}
	if l := s.nums[ev.Num]; l != nil && ev.Kind == record.Resumed {
		s.learnHolder(l, ev)
	}
	num := ev.Num
	if ev.Kind == record.Admitted && ev.Base != 0 && !ev.Part {
		num = ev.Base // the lease takes over what its conversion asked for
	}
	if l := s.nums[num]; l != nil &&
		(ev.Kind == record.Granted || ev.Kind == record.Admitted || ev.Kind == record.Converted) {
		l.fence, l.claims = ev.Fence, claimsText(ev.Claims)
		s.leases[ev.Fence] = l
	}
}

// learnHolder records the new holder of a resumed lease.
func (s *script) learnHolder(l *lease, ev *record.Event) {
	l.actor, l.who = nil, ev.Agent
	for _, a := range s.actors {
		if a.num == ev.Session && ev.Session != 0 {
			l.actor, l.who = a, s.flowName(a.name, ev.Flow)
		}
	}
	if ev.Queued {
		s.ticket(l.id)
		return
	}
	l.fence = ev.Fence
	s.leases[ev.Fence] = l
}

func (s *script) ticket(id [16]byte) string {
	if s.tickets[id] == "" {
		s.tickets[id] = fmt.Sprintf("t%d", len(s.tickets)+1)
	}
	return s.tickets[id]
}

var endings = map[record.Reason]string{
	record.ByRelease: "released", record.ByTTL: "expired", record.ByRevocation: "revoked", record.ByLapse: "lapsed",
}

func (s *script) printEvent(ev *record.Event, told map[[16]byte]bool) {
	l := s.nums[ev.Num]
	if ev.Kind == record.Admitted && ev.Base != 0 && !ev.Part {
		l = s.nums[ev.Base]
	}
	if l == nil {
		l = &lease{}
	}
	switch ev.Kind {
	case record.Opened:
		s.printf("term epoch=%d fence=%d", ev.Epoch, ev.Fence)
	case record.SessionOpened:
		s.printf("opened %s", ev.Agent)
	case record.SessionEnded:
		name := "?"
		for _, a := range s.actors {
			if a.num == ev.Session {
				name = a.name
			}
		}
		s.printf("session of %s over (%v)", name, ev.Reason)
	case record.Granted:
		if ev.Part && !told[l.id] {
			s.printf("part %s to %s fence=%d", l.claims, l.who, ev.Fence)
		}
	case record.Queued:
		if ev.Part {
			s.printf("part %s is to go to %s ticket=%s", l.claims, l.who, s.ticket(ev.ID))
		}
	case record.Admitted:
		switch {
		case ev.Offer:
			s.printf("offered %s to %s fence=%d", l.claims, l.who, ev.Fence)
		case !told[l.id]:
			s.printf("granted %s to %s fence=%d, and nobody was told", l.claims, l.who, ev.Fence)
		}
	case record.TaskSubmitted, record.AttemptFailed, record.TaskMoved, record.TaskForgotten, record.ApprovalRequested,
		record.ApprovalDecided:
		s.printTaskEvent(ev)
	case record.Refused:
		who := cmp.Or(ev.Agent, "nobody")
		if ev.Actor != "" {
			who += " of " + ev.Actor
		}
		s.refusal = fmt.Sprintf(
			"recorded %s of %s by %s: %s left_out=%d", ev.Outcome, claimsText(ev.Claims), who, ev.Code, ev.Num,
		)
	case record.Claimed:
		s.printf("claimed %s %s fence=%d", l.claims, l.who, l.fence)
	case record.Grace:
		s.printf("grace %s %s fence=%d (%v)", l.claims, l.who, l.fence, ev.Reason)
	case record.YieldRequested:
		s.printf("asked %s %s fence=%d by %s ticket=%s", l.claims, l.who, l.fence, byWhom(ev), s.ticket(ev.ByID))
	case record.Parked:
		how := "keeps its keys"
		if ev.Freed {
			how = "frees its keys"
		}
		if ev.Reason != 0 {
			s.printf("parked again %s %s fence=%d for %v (%v)", l.claims, l.who, l.fence, ev.TTL, ev.Reason)
		} else {
			s.printf("parked %s %s fence=%d for %v, %s", l.claims, l.who, l.fence, ev.TTL, how)
		}
		l.actor = nil
	case record.TTLChanged:
		s.printf("ttl of %s %s fence=%d is %v", l.claims, l.who, ev.Fence, ev.TTL)
	case record.Decided:
		s.printf(
			"%v %s %s fence=%d by %s", interlock.Verdict(ev.Op), l.claims, l.who, ev.Fence,
			interlock.Answerer(ev.Actor, ev.Agent),
		)
	case record.Resumed:
		if ev.Queued {
			s.printf("resumed %s %s, in line", l.claims, l.who)
		} else if !told[l.id] {
			s.printf("resumed %s %s fence=%d, and nobody was told", l.claims, l.who, ev.Fence)
		}
	case record.Closed:
		s.printf("closed %s %s fence=%d for %v (%v)", l.claims, l.who, l.fence, ev.LockDelay, ev.Reason)
	case record.Ended:
		if word := endings[ev.Reason]; word != "" {
			s.printf("%s %s %s fence=%d", word, l.claims, l.who, l.fence)
		} else {
			s.printf("ended %s %s fence=%d (%v)", l.claims, l.who, l.fence, ev.Reason)
		}
	case record.NamespaceDeleted:
		s.printf("deleted namespace %s (%s)", ev.Namespace, prose.Sentence(ev.Why()))
	case record.NamespaceForgotten:
		s.printf("forgot namespace %s", ev.Namespace)
	case record.Left:
		s.printf("left %s %s ticket=%s (%v)", l.claims, l.who, s.ticket(l.id), ev.Reason)
	}
}

func (s *script) printEffect(cmd engine.Command, e *engine.Effect, alone bool) {
	who, push := strings.CutPrefix(fmt.Sprint(e.To), pushed)
	name := who
	if l := s.leases[e.Lease.Fence]; l != nil && e.Lease.Fence > 0 {
		name = l.who
	}
	suffix := ""
	if push && (cmd == nil || e.To != cmd.Header().From) {
		suffix = " (pushed)"
	}
	s.printTasks(who, e)
	if e.Handed != nil {
		return
	}
	switch e.Outcome {
	case engine.Granted:
		text := fmt.Sprintf(
			"granted %s to %s fence=%d until=%v", claimsText(e.Lease.Claims), name, e.Lease.Fence,
			since(s.now.Add(e.Lease.ExpiresIn)),
		)
		if e.Lease.State != interlock.Held {
			text += fmt.Sprintf(" state=%v", e.Lease.State)
		}
		if e.Lease.MaxHoldIn > 0 {
			text += fmt.Sprintf(" max_hold=%v", since(s.now.Add(e.Lease.MaxHoldIn)))
		}
		if e.Lease.Generation > 0 {
			text += fmt.Sprintf(" generation=%d", e.Lease.Generation)
		}
		if e.Lease.StallIn > 0 {
			text += fmt.Sprintf(" stall=%v", since(s.now.Add(e.Lease.StallIn)))
		}
		if p := e.Lease.Parking; p != nil {
			text += fmt.Sprintf(" since=%v left=%v freed=%v reason=%q", p.Since, p.Left, p.Freed, p.Reason)
		}
		if len(e.Lease.Moved) > 0 {
			text += fmt.Sprintf(" moved=%v", e.Lease.Moved)
		}
		text += decisionText(e.Lease.Decision)
		text += yieldText(e.Lease.Yield)
		if e.Lease.Reused {
			text += " reused"
		}
		text += s.endedBy(&e.Lease)
		if e.Lease.Changed && s.changed {
			text += " changed"
		}
		s.printf("%s%s", text, suffix)
		s.printStale(e.Lease.Stale, e.Lease.StaleMore)
		s.printHanded(&e.Lease)
		for _, p := range e.Lease.Parts {
			text := fmt.Sprintf("  part %s fence=%d", p.Key, p.Fence)
			if p.Stop {
				text += fmt.Sprintf(" stop left=%v", p.Left)
			}
			s.printf("%s", text)
		}
		for _, n := range e.Lease.Notes {
			s.printf("  note at %s by %s fence=%d outcome=%q %q age=%v", n.Key, n.Agent, n.Fence, n.Outcome, n.Text, n.Age)
		}
	case engine.Queued:
		if _, idle := cmd.(*engine.Pull); idle {
			s.printf("idle %s ticket=%s", who, s.ticket(e.Ticket.ID))
			break
		}
		if e.Question != nil {
			s.printf("%s waits for the answer about %s", who, questionLine(e.Question))
			break
		}
		text := ""
		for _, l := range s.nums {
			if l.id == [16]byte(e.Ticket.ID) {
				text = l.claims + " " + l.who
			}
		}
		s.printf("queued %s ticket=%s position=%d%s", text, s.ticket(e.Ticket.ID), e.Ticket.Position, suffix)
	case engine.Skipped:
		s.printf("skipped %s %s", askedText(cmd), who)
	case engine.Done:
		switch cmd.(type) {
		case *engine.Commit:
			s.printCommitted(who, e)
		case *engine.Ack:
			if len(e.Documents) > 0 {
				s.printCommitted(who, e)
			}
		case *engine.ForgetEffects:
			s.printf("forgot %d", e.Forgotten)
		case *engine.Heartbeat, *engine.Attach:
			s.printf("alive %s until=%v", who, since(s.now.Add(e.Session.ExpiresIn)))
			if e.WantsList {
				s.printf("  wants a list")
			}
		default:
			if e.Effect != nil {
				s.printf("%s", s.effectLine(e.Effect))
			} else if alone && e.Tasks == nil {
				s.printf("ok")
			}
		}
	case engine.Refused:
		if asked := askedText(cmd); asked != "" && e.To == cmd.Header().From {
			s.printf("refused %s %s %s%s", asked, who, e.Code, s.endedBy(&e.Lease))
		} else {
			s.printf("%s%s", strings.Join(strings.Fields("refused "+who+" "+string(e.Code)+s.endedBy(&e.Lease)), " "), suffix)
		}
		if e.Effect != nil {
			s.printf("  %s", s.effectLine(e.Effect))
		}
		s.printStale(e.Stale, e.StaleMore)
		if e.Conflict != nil {
			for _, near := range e.Conflict.Nearest {
				s.printf("  near: %s", near)
			}
			for i, c := range e.Conflict.Cycle {
				next := e.Conflict.Cycle[(i+1)%len(e.Conflict.Cycle)]
				mark := ""
				if c.Victim {
					mark = " (victim)"
				}
				s.printf(
					"  %s waits for %s%s%s", s.flowName(c.Agent, c.Flow), s.flowName(next.Agent, next.Flow), atText(c.Key, c.Mode),
					mark,
				)
			}
		}
	case engine.Warned:
		text := fmt.Sprintf("warned %s fence=%d until=%v", name, e.Lease.Fence, since(s.now.Add(e.Lease.ExpiresIn)))
		if e.Lease.StallIn > 0 {
			text += fmt.Sprintf(" stall=%v", since(s.now.Add(e.Lease.StallIn)))
		}
		s.printf("%s%s", text, suffix)
	case engine.Asked:
		s.printf("told %s fence=%d%s%s", name, e.Lease.Fence, yieldText(e.Lease.Yield), suffix)
	case engine.Lost:
		s.printf("lost %s fence=%d %s%s%s", name, e.Lease.Fence, e.Code, s.endedBy(&e.Lease), suffix)
	}
	for _, text := range prose.Sentences(e.Warnings) {
		s.printf("  warning: %s", text)
	}
	for i := range e.Losses {
		l := &e.Losses[i]
		s.printf(
			"  %s fence=%d %v %s%s%s", claimsText(l.Lease.Claims), l.Lease.Fence, l.Lease.State, l.Code, s.endedBy(&l.Lease),
			yieldText(l.Lease.Yield),
		)
	}
}

// yieldText describes the request that asks for a lease.
func yieldText(y *interlock.Yield) string {
	if y == nil {
		return ""
	}
	text := " yield to " + flowName(y.Agent, y.Flow)
	if y.Purpose != "" {
		text += fmt.Sprintf(" purpose=%q", y.Purpose)
	}
	if y.Priority != 0 {
		text += fmt.Sprintf(" priority=%d", y.Priority)
	}
	text += fmt.Sprintf(" since=%v", y.Since)
	if y.Revoked {
		text += " revoked"
	}
	return text
}

// endedBy returns what brought a lease to its end, in a script that wants to know.
func (s *script) endedBy(l *interlock.Lease) string {
	if !s.ends || l.EndedBy == "" {
		return ""
	}
	return " by " + l.EndedBy
}

// askedText returns the request of an Acquire, "" for other commands.
func askedText(cmd engine.Command) string {
	switch c := cmd.(type) {
	case *engine.Convert:
		return claimsText(c.Claims)
	case *engine.Acquire:
		return anyText(c.Any) + claimsText(c.Claims)
	case *engine.StartRun:
		return strings.TrimSuffix("run of "+c.Org+" "+c.Workflow, " ")
	}
	return ""
}

func anyText(any bool) string {
	if any {
		return "any of "
	}
	return ""
}

// atText describes the key of a wait; it is empty for a declared wait.
func atText(key interlock.Key, mode interlock.Mode) string {
	if key == "" {
		return ""
	}
	if mode.Counts() {
		return fmt.Sprintf(" at %s(%v)", key, mode)
	}
	return " at " + claimsText([]interlock.Claim{{Key: key, Mode: mode}})
}

func flowName(agent, flow string) string {
	if flow == "" || flow == "main" {
		return agent
	}
	return agent + "/" + flow
}

// flowName is flowName with the script's name for a task in its worker's flow.
func (s *script) flowName(agent, flow string) string {
	for _, id := range s.tasks {
		if flow == id.String() {
			flow = s.taskName(id)
		}
	}
	return flowName(agent, flow)
}

func (s *script) partyName(p *engine.FlowRef) string {
	if !p.Task.IsZero() {
		return s.flowName(p.Agent, p.Task.String())
	}
	return s.flowName(p.Agent, p.Flow)
}

// flowIn reads the name of a flow; that of a task stands for the flow in which a worker
// has it.
func (s *script) flowIn(w *words) string {
	name := w.get("flow")
	for i, id := range s.tasks {
		if name == fmt.Sprintf("q%d", i+1) {
			return id.String()
		}
	}
	return name
}

// explain writes the blockers of a request.
func (s *script) explain(c *engine.Conflict) {
	s.printf("  %s at %s, line of %d, eta=%v", c.Kind, c.Key, c.Line.Length, c.Line.ETA)
	if c.Ahead > 0 {
		s.printf("  behind %d who wait for %s", c.Ahead, c.LineKey)
	}
	for i := range c.Holders {
		s.printHolder(&c.Holders[i])
	}
	if c.More > 0 {
		s.printf("  and %d more", c.More)
	}
	s.printCapacity(c.Capacity)
}

func (s *script) printCapacity(c *interlock.Capacity) {
	if c == nil {
		return
	}
	text := ""
	if c.Permits > 0 {
		text += fmt.Sprintf(" %d of %d permits taken", c.Used, c.Permits)
	}
	for _, g := range c.Groups {
		text += fmt.Sprintf(", group %s has %d (min %d, max %d)", g.Name, g.Used, g.Min, g.Max)
	}
	if c.Tokens > 0 {
		text += fmt.Sprintf(" %d of %d tokens there", c.Available, c.Tokens)
	}
	if c.Refill > 0 {
		text += fmt.Sprintf(", the next in %v", c.Refill)
	}
	s.printf(" %s", text)
}

func (s *script) printHolder(h *interlock.Holder) {
	text := fmt.Sprintf("  held by %s %s fence=%d %v held=%v until=%v", s.flowName(h.Agent, h.Flow),
		claimsText([]interlock.Claim{{Key: h.Key, Mode: h.Mode, Count: h.Count}}), h.Fence, h.Liveness, h.Held,
		since(s.now.Add(h.ExpiresIn)))
	if h.Progress != "" {
		text += fmt.Sprintf(" progress=%q", h.Progress)
	}
	if h.Purpose != "" {
		text += fmt.Sprintf(" purpose=%q", h.Purpose)
	}
	if s.ends && h.EndedBy != "" {
		text += " by " + h.EndedBy
	}
	s.printf("%s%s", text, yieldText(h.Yield))
}

// show writes the public views. showParked lists parked leases, a page after the other.
func (s *script) showParked(ns interlock.Namespace, w *words) {
	var after engine.ParkedAt
	for more := true; more; {
		l := &engine.ParkedList{Namespace: ns, After: after, Limit: int(w.number("limit"))}
		for !l.Look(s.e) {
		}
		for i := range l.Rows {
			r, keys := &l.Rows[i], "kept"
			if r.Parking.Freed {
				keys = "freed"
			}
			s.printf(
				"%s of %s fence=%d keys=%s since=%v left=%v reason=%q", claimsText(r.Claims), s.flowName(r.Agent, r.Flow), r.Fence,
				keys, r.Parking.Since, r.Parking.Left, r.Parking.Reason,
			)
		}
		if after, more = l.Next, l.More; more {
			s.printf("and more")
		}
	}
}

func (s *script) show(w *words) error {
	ns := s.head(w).Namespace
	s.target = s.now
	switch {
	case w.has("doc"), w.has("versions"), w.has("docs"):
		s.showDocuments(ns, w)
	case w.has("parked"):
		s.showParked(ns, w)
	case w.has("key"):
		v, err := s.e.Key(ns, interlock.Key(w.get("key")))
		if err != nil {
			s.refusedQuery(err)
			return nil
		}
		text := string(v.Key)
		if v.Generation > 0 {
			text += fmt.Sprintf(" generation=%d", v.Generation)
		}
		if v.Broken {
			text += " broken"
		}
		s.printf("%s", text)
		for i := range v.Holders {
			s.printHolder(&v.Holders[i])
		}
		for _, x := range v.Waiters {
			if x.Mode.Counts() {
				x.Agent += fmt.Sprintf(" (%d)", x.Count)
			}
			text := fmt.Sprintf(
				"  %d. %s waits %s waited=%v eta=%v", x.Position, s.flowName(x.Agent, x.Flow), x.Mode, x.Waited, x.ETA,
			)
			if x.Priority != 0 {
				text += fmt.Sprintf(" priority=%d", x.Priority)
			}
			if x.Offered {
				text += " offered"
			}
			s.printf("%s", text)
		}
		for _, n := range v.Notes {
			s.printf("  note by %s fence=%d outcome=%q %q age=%v", n.Agent, n.Fence, n.Outcome, n.Text, n.Age)
		}
		s.printCapacity(v.Capacity)
		if v.Pattern != "" {
			s.printf("  pattern %s", v.Pattern)
		}
		if v.HoldTime >= time.Millisecond {
			s.printf("  usually held %v", v.HoldTime.Round(time.Millisecond))
		}
	case w.has("task"), w.has("tasks"), w.has("queue"), w.has("log"), w.has("approvals"), w.has("stuck"):
		return s.showTasks(ns, w)
	case w.has("webhooks"):
		s.showWebhooks(ns)
	case w.has("runs"), w.has("revisions"):
		s.showAdmission(ns, w)
	case w.has("waits"):
		for _, e := range s.e.Waits(ns) {
			text := fmt.Sprintf("%s waits for %s%s", s.partyName(&e.Waiter), s.partyName(&e.Blocker), atText(e.Key, e.Mode))
			if e.Ahead {
				text += " (ahead in line)"
			}
			if !e.Task.IsZero() {
				text += " (the end of " + s.taskName(e.Task) + ")"
			}
			s.printf("%s", text)
		}
	case w.has("state"):
		c := s.e.Counts()
		s.printf("keys=%d leases=%d waiters=%d sessions=%d", c.Keys, c.Leases, c.Waiters, c.Sessions)
	case w.has("keys"):
		rows, more := s.e.Keys(ns, engine.KeyFilter{
			Prefix: w.get("prefix"), Held: w.has("held"), Waiting: w.has("waiting"),
			After: interlock.Key(w.get("after")), Limit: int(w.number("limit")),
		})
		for _, r := range rows {
			s.printf("%s holders=%d waiters=%d", r.Key, len(r.Holders)+r.More, r.Length)
		}
		if more {
			s.printf("and more")
		}
	case w.has("agent"):
		for _, h := range s.e.AgentHolds(ns, w.get("agent")) {
			s.printHolder(&h)
		}
	case w.has("contention"):
		s.showContention(ns)
	case w.has("effects"):
		s.showEffects(ns, w)
	case w.has("hot"):
		for _, h := range s.e.Hot(ns, 10) {
			s.printf("%s holders=%d waiters=%d", h.Key, h.Holders, h.Length)
		}
	default:
		return fmt.Errorf("show what?")
	}
	return nil
}

// byWhom names the agent that asks for a lease, and its credential.
func byWhom(ev *record.Event) string {
	if ev.Actor == "" {
		return ev.Asker
	}
	return ev.Asker + " as " + ev.Actor
}

// refusedQuery prints why the engine does not answer a question.
func (s *script) refusedQuery(err error) {
	if refusal, ok := prose.Refusal(err); ok {
		err = refusal
	}
	s.printf("refused: %v", err)
}
