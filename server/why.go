package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

const (
	maxChain    = 16 // bounds how far why follows a chain of waits
	maxToldWait = 16 // bounds how many waits of an agent why tells
)

// link is one step of the chain that why shows: what a party does with a key.
type link struct {
	engine.Party
	does     string // holds, waits, or awaited: another declares that it waits for it
	key      interlock.Key
	mode     interlock.Mode
	liveness interlock.Liveness // of a holder
	since    time.Duration      // held or waited for
	end      interlock.TaskID   // of the task that it waits for
}

const (
	holds   = "holds"
	waits   = "waits"
	awaited = "awaited"
)

// why is GET /v1/why?key= and ?agent=: one paragraph, the chain down to the party that all wait for
// in the end, and what to do.
func (c *call) why() {
	keyText, agent := c.query.Get("key"), c.query.Get("agent")
	if (keyText == "") == (agent == "") {
		c.refuse(interlock.CodeInvalidRequest, "ask after one key, or after one agent: ?key=account:12345 or ?agent=billing-7")
		return
	}
	if agent != "" {
		c.whyAgent(agent)
		return
	}
	key, ok := c.key(keyText)
	if !ok {
		return
	}
	c.whyKey(key)
}

func (c *call) whyKey(key interlock.Key) {
	var view engine.KeyView
	var err error
	graph, stuck := engine.WaitGraph{Namespace: c.namespace}, engine.HeldBack{Namespace: c.namespace}
	seen, told := false, false
	var mode interlock.Mode
	var problem string
	at, ok := c.look(func(e *engine.Engine) bool {
		if !seen {
			view, err = e.Key(c.namespace, key)
			seen, stuck.Key = true, view.Key
			mode, problem = e.MayClaim(c.namespace, view.Key, c.identity.Principal)
		}
		if !told {
			told = stuck.Look(e)
			return told && len(view.Holders)+view.Length == 0
		}
		return graph.Look(e)
	})
	if !ok {
		return
	}
	if err != nil {
		c.failWith(err)
		return
	}
	x := explainKey(&view, graph.Edges)
	x.tellStuck(&stuck)
	if no := refusal(c.identity.Principal, mayHold, ""); no != nil {
		mode, problem = 0, no.Message
	}
	x.advice = adviceToClaim(x.advice, mode, problem)
	c.tellWhy("key", string(view.Key), x, at)
}

// adviceToClaim is the advice to acquire a key, for a caller that may claim it in a mode; 0:
// in none, for a problem. Other advice stays as it is.
func adviceToClaim(advice interlock.Advice, mode interlock.Mode, problem string) interlock.Advice {
	const acquire = "acquire it"
	rest, ok := strings.CutPrefix(advice.Message, acquire)
	switch {
	case !ok || mode == interlock.Exclusive:
	case mode == 0:
		advice.Action, advice.Message = interlock.ActAskHuman, problem
		if rest = strings.TrimPrefix(rest, ": "); rest != "" {
			advice.Message += "; " + rest
		}
	default:
		advice.Message = acquire + " in mode " + mode.String() + rest
	}
	return advice
}

// explainKey returns why a key is as it is.
func explainKey(view *engine.KeyView, edges []engine.WaitEdge) *explanation {
	key := cleanText(string(view.Key))
	if len(view.Holders) == 0 && view.Length == 0 && !isDry(view.Capacity) {
		text := key + " is free: nobody holds it or anything above or below it that would stand in the way, and nobody is in line for it."
		if c := view.Capacity; c != nil {
			text += " It has " + roomText(c) + "."
			if len(c.Groups) > 0 {
				text += " Of these " + groupsText(c) + "."
			}
		}
		return &explanation{text: text, advice: interlock.Advice{Action: interlock.ActRetry, Message: "acquire it"}}
	}
	var b strings.Builder
	var chain []link
	conflict := conflictOfView(view)
	gate := gather(view)
	switch {
	case gate != nil:
		b.WriteString(gate.text(key) + ". ")
	case len(view.Holders) > 0:
		h := &view.Holders[0]
		b.WriteString(situation(conflict) + ". ")
		if c := view.Capacity; c != nil && c.Tokens > 0 && conflict.Kind != interlock.RateUsed {
			fmt.Fprintf(&b, "It has %s. ", tokensText(c))
		}
		chain = append(chain, link{
			Party: engine.Party{Agent: h.Agent, Session: h.Session, Flow: h.Flow}, does: holds, key: h.Key, mode: h.Mode, liveness: h.Liveness, since: h.Held,
		})
	case conflict.Kind == interlock.RateUsed: // what was taken has no holder any more
		b.WriteString(situation(conflict) + ". ")
	default:
		fmt.Fprintf(&b, "Nobody holds %s at this moment. ", key)
		if e := firstWait(view, edges); e != nil {
			chain = append(chain, waitOf(e))
		}
	}
	if c := view.Capacity; c != nil && len(c.Groups) > 0 {
		fmt.Fprintf(&b, "Of these %s. ", groupsText(c))
	}
	b.WriteString(yields(view.Holders))
	switch {
	case gate != nil:
	case view.Length > 0:
		fmt.Fprintf(&b, "%s in line%s. ", count(view.Length, "waiter is", "waiters are"), firstWaiter(view))
	default:
		b.WriteString("Nobody waits for it. ")
	}
	if view.HoldTime > 0 {
		fmt.Fprintf(&b, "Keys like it are usually held for %s. ", short(view.HoldTime))
	}
	if len(chain) > 0 {
		chain = follow(chain, waysOn(edges))
		b.WriteString(chainText(chain))
	}
	x := &explanation{text: strings.TrimSpace(b.String()), chain: chain}
	if gate != nil {
		x.advice = gate.advice()
	} else {
		x.advice = keyAdvice(view, conflict, chain)
	}
	return x
}

// conflictOfView is what a newcomer would meet at a key.
func conflictOfView(view *engine.KeyView) *engine.Conflict {
	c := &engine.Conflict{
		Key: view.Key, Kind: interlock.OtherAgent, Holders: view.Holders, More: view.More, Capacity: view.Capacity,
		Queue: interlock.Queue{Length: view.Length},
	}
	switch {
	case len(view.Holders) == 0 && isDry(view.Capacity):
		c.Kind = interlock.RateUsed
	case len(view.Holders) == 0:
	case view.Holders[0].Liveness == interlock.Closed:
		c.Kind = interlock.LockDelayed
	case view.Holders[0].Key != view.Key && len(view.Holders[0].Key) < len(view.Key):
		c.Kind = interlock.AncestorHeld
	case view.Holders[0].Key != view.Key:
		c.Kind = interlock.DescendantHeld
	case view.Holders[0].Mode == interlock.Permits && view.Capacity != nil:
		// Holders of permits are in the way only by the numbers.
		if c.Kind = interlock.CapacityUsed; view.Capacity.Used < view.Capacity.Permits && isDry(view.Capacity) || view.Capacity.Permits == 0 {
			c.Kind = interlock.RateUsed
		}
	}
	return c
}

func keyAdvice(view *engine.KeyView, c *engine.Conflict, chain []link) interlock.Advice {
	wait := func(after time.Duration, format string, args ...any) interlock.Advice {
		return interlock.Advice{Action: interlock.ActWait, RetryAfter: after, Message: fmt.Sprintf(format, args...)}
	}
	if c.Kind == interlock.RateUsed && isDry(view.Capacity) {
		return wait(atLeastASecond(refill(c)), "the next token comes in %s: stand in line with on_conflict wait", short(refill(c)))
	}
	if len(view.Holders) == 0 && view.Length > 0 && onlyDormant(view) {
		return interlock.Advice{Action: interlock.ActRetry, Message: "acquire it: who is in line are tasks that wait for a worker; if they wait for too long, start workers for their queue"}
	}
	if len(view.Holders) == 0 && len(chain) > 1 {
		return wait(0, "%s", inTheEnd(chain))
	}
	if len(view.Holders) == 0 {
		return wait(time.Second, "the key goes to the first in line: stand in line with on_conflict wait")
	}
	h := &view.Holders[0]
	switch {
	case c.Kind == interlock.LockDelayed:
		return wait(atLeastASecond(h.ExpiresIn), "it opens by itself in %s: stand in line with on_conflict wait; if nothing of %s can still be writing, an operator may revoke fence %s",
			short(h.ExpiresIn), agentName(h.Agent), h.Fence)
	case h.Liveness == interlock.LiveParked:
		return interlock.Advice{Action: interlock.ActAskHuman, Message: fmt.Sprintf(
			"a human has to decide: ask whoever runs %s, or work on something else; the parking ends in %s at the latest", agentName(h.Agent), short(h.ExpiresIn),
		)}
	case h.Liveness == interlock.Suspect || h.Liveness == interlock.LiveGrace:
		return wait(atLeastASecond(h.ExpiresIn), "%s; the key goes on in %s at the latest: stand in line with on_conflict wait", over(h), short(h.ExpiresIn))
	case len(chain) > 1:
		return wait(0, "%s", inTheEnd(chain))
	case h.Held > time.Hour:
		return interlock.Advice{Action: interlock.ActAskHuman, Message: fmt.Sprintf(
			"%s lives, and has held it for %s: ask whoever runs it, or revoke fence %s", agentName(h.Agent), short(h.Held), h.Fence,
		)}
	case view.Length == 0 && (c.Kind == interlock.RateUsed || c.Kind == interlock.CapacityUsed && view.Capacity.Used < view.Capacity.Permits):
		return interlock.Advice{Action: interlock.ActRetry, Message: "acquire it: some are left, unless they are kept for a group"}
	}
	return wait(infoOf(interlock.CodeHeld).after, "stand in line with on_conflict wait, or work on something else")
}

// firstInLine returns the first waiter in the line of a key, nil for none. The waiters of
// the view begin with those that have an offer: they hold the key, and stand in no line.
func firstInLine(view *engine.KeyView) *engine.WaiterView {
	i := slices.IndexFunc(view.Waiters, func(w engine.WaiterView) bool { return !w.Offered })
	if i < 0 {
		return nil
	}
	return &view.Waiters[i]
}

// firstWait returns the wait of the first in line at a key without a holder, or nil.
func firstWait(view *engine.KeyView, edges []engine.WaitEdge) *engine.WaitEdge {
	first := firstInLine(view)
	if first == nil {
		return nil
	}
	i := slices.IndexFunc(edges, func(e engine.WaitEdge) bool {
		w := &e.Waiter
		return e.Key == view.Key && w.Agent == first.Agent && w.Session == first.Session && w.Flow == first.Flow && w.Task == first.Task
	})
	if i < 0 {
		return nil
	}
	return &edges[i]
}

// inTheEnd returns what to do about the last of a chain.
func inTheEnd(chain []link) string {
	last := &chain[len(chain)-1]
	switch {
	case last.key == "":
		return fmt.Sprintf("what everybody waits for in the end is %s: look at that agent", partyName(&last.Party))
	case last.does == waits:
		return fmt.Sprintf("what everybody waits for in the end is %s, which waits for %s", partyName(&last.Party), cleanText(string(last.key)))
	}
	return fmt.Sprintf("what everybody waits for in the end is %s with %s: if that cannot finish, an operator may revoke it", agentName(last.Agent), cleanText(string(last.key)))
}

// explanation is the answer to a question why.
type explanation struct {
	text   string
	chain  []link
	advice interlock.Advice
	waits  [][]link // of an agent: the chain of each of its waits, the first of them chain
	more   int      // waits of the agent that the others leave out
}

func (c *call) whyAgent(agent string) {
	held := engine.Holdings{Namespace: c.namespace, Agent: agent}
	graph, stuck := engine.WaitGraph{Namespace: c.namespace}, engine.HeldBack{Namespace: c.namespace, Agent: agent}
	at, ok := c.survey(&held, &graph, &stuck)
	if !ok {
		return
	}
	x := explainAgent(agent, held.Holders, graph.Edges)
	x.tellStuck(&stuck)
	c.tellWhy("agent", agent, x, at)
}

// explainAgent returns what an agent has and waits for.
func explainAgent(agent string, held []interlock.Holder, edges []engine.WaitEdge) *explanation {
	name := agentName(agent)
	var b strings.Builder
	switch len(held) {
	case 0:
		fmt.Fprintf(&b, "%s holds nothing. ", name)
	case 1:
		fmt.Fprintf(&b, "%s holds %s (%s) for %s. ", name, cleanText(string(held[0].Key)), modeText(&held[0]), short(held[0].Held))
	default:
		fmt.Fprintf(&b, "%s holds %d keys, the first of them %s for %s. ", name, len(held), cleanText(string(held[0].Key)), short(held[0].Held))
	}
	if n := parkedAmong(held); n > 0 {
		fmt.Fprintf(&b, "%s parked while a human decides. ", count(n, "of them is", "of them are"))
	}
	waitedFor := map[engine.Party]bool{}
	for i := range edges {
		if e := &edges[i]; e.Blocker.Agent == agent && e.Waiter.Agent != agent {
			waitedFor[flowOf(e.Waiter)] = true
		}
	}
	if n := len(waitedFor); n > 0 {
		fmt.Fprintf(&b, "%s for it. ", count(n, "other waits", "others wait"))
	}
	waits := waitsOf(agent, edges)
	if len(waits) == 0 {
		b.WriteString("It waits for nothing.")
		return &explanation{text: b.String(), advice: idleAdvice(held)}
	}
	x := &explanation{more: max(0, len(waits)-maxToldWait)}
	ways := waysOn(edges)
	for _, e := range waits[:len(waits)-x.more] {
		chain := follow(chainFrom(e), ways)
		x.waits = append(x.waits, chain)
		b.WriteString(chainText(chain) + " ")
	}
	if x.more > 0 {
		fmt.Fprintf(&b, "It has %s besides.", count(x.more, "wait", "waits"))
	}
	x.text, x.chain = strings.TrimSpace(b.String()), x.waits[0]
	x.advice = interlock.Advice{Action: interlock.ActWait, Message: hangsOn(x.waits)}
	return x
}

// waitsOf returns one edge of each wait of an agent, in the order of arrival. A wait is for one
// key, one task or one agent. A holder in the way explains more than a waiter ahead.
func waitsOf(agent string, edges []engine.WaitEdge) (waits []*engine.WaitEdge) {
	type wait struct {
		waiter engine.Party
		key    interlock.Key
		end    interlock.TaskID
		target engine.Party // of a declared wait
	}
	at := map[wait]int{}
	for i := range edges {
		e := &edges[i]
		if e.Waiter.Agent != agent {
			continue
		}
		id := wait{waiter: e.Waiter, key: e.Key, end: e.Task}
		if e.Key == "" && e.Task.IsZero() {
			id.target = e.Blocker
		}
		have, known := at[id]
		switch {
		case !known:
			at[id] = len(waits)
			waits = append(waits, e)
		case waits[have].Ahead && !e.Ahead:
			waits[have] = e
		}
	}
	return waits
}

// hangsOn returns the party that has to act before an agent's waits end.
func hangsOn(chains [][]link) string {
	const most = 3
	var names []string
	for _, chain := range chains {
		if name := partyName(&chain[len(chain)-1].Party); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return fmt.Sprintf("everything hangs on %s: when that releases, the line moves", names[0])
	}
	list := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	if n := len(names) - most; n > 0 {
		list = fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return fmt.Sprintf("it waits in several lines, which hang on %s: when one of them releases, its line moves", list)
}

// idleAdvice is about an agent that waits for nothing.
func idleAdvice(held []interlock.Holder) interlock.Advice {
	if len(held) == 0 {
		return interlock.Advice{Action: interlock.ActRetry, Message: "nothing stands in its way: if it seems stuck, look at the agent itself"}
	}
	h := &held[0]
	switch {
	case h.Liveness == interlock.Suspect || h.Liveness == interlock.LiveGrace:
		message := fmt.Sprintf("%s, and loses what it holds in %s at the latest", over(h), short(h.ExpiresIn))
		if h.Liveness == interlock.Suspect {
			message += ", unless it comes back"
		}
		return interlock.Advice{Action: interlock.ActWait, RetryAfter: atLeastASecond(h.ExpiresIn), Message: message}
	case parkedAmong(held) == len(held):
		return interlock.Advice{Action: interlock.ActAskHuman, Message: "it waits for a human's decision: ask who has to decide"}
	}
	return interlock.Advice{Action: interlock.ActWait, Message: "it is at work: let it finish"}
}

// waysOn returns for each party the edge that best explains its wait: a holder rather than a waiter
// ahead.
func waysOn(edges []engine.WaitEdge) map[engine.Party]*engine.WaitEdge {
	next := map[engine.Party]*engine.WaitEdge{}
	for i := range edges {
		e := &edges[i]
		if have := next[flowOf(e.Waiter)]; have == nil || have.Ahead && !e.Ahead {
			next[flowOf(e.Waiter)] = e
		}
	}
	return next
}

// follow goes from the last of the chain to the party that it waits for, and so on.
func follow(chain []link, next map[engine.Party]*engine.WaitEdge) []link {
	seen := map[engine.Party]bool{}
	for i := range len(chain) - 1 {
		seen[flowOf(chain[i].Party)] = true
	}
	for len(chain) < maxChain {
		at := chain[len(chain)-1]
		e := next[flowOf(at.Party)]
		if e == nil || seen[flowOf(at.Party)] {
			break
		}
		seen[flowOf(at.Party)] = true
		if at.does != waits || at.key != e.Key {
			chain = append(chain, waitOf(e))
		}
		chain = append(chain, blockerOf(e))
	}
	return chain
}

// chainFrom is the chain of one wait, as far as its edge goes.
func chainFrom(e *engine.WaitEdge) []link { return []link{waitOf(e), blockerOf(e)} }

// blockerOf is the blocker of an edge.
func blockerOf(e *engine.WaitEdge) link {
	does := holds
	switch {
	case e.Key == "":
		does = awaited
	case e.Ahead:
		does = waits
	}
	blocker := e.Blocker
	if blocker == (engine.Party{}) { // the task has no worker, nor is it in line
		blocker.Task = e.Task
	}
	return link{Party: blocker, does: does, key: e.Has.Key, mode: e.Has.Mode}
}

// waitOf is the waiter of an edge.
func waitOf(e *engine.WaitEdge) link {
	return link{Party: e.Waiter, does: waits, key: e.Key, mode: e.Mode, since: e.Waited, end: e.Task}
}

// flowOf makes all requests of one flow the same party. Those without a session
// stay apart, by the number of their request.
func flowOf(p engine.Party) engine.Party {
	if p.Session != "" {
		p.Request = 0
	}
	return p
}

// chainText reads: billing-7 waits for org:acme, which support-2 holds; support-2
// itself waits for account:1, behind audit-1 in line; audit-1 itself says that it
// waits for review-3.
func chainText(chain []link) string {
	var b strings.Builder
	for i := range chain {
		name, what := partyName(&chain[i].Party), "waits for "+cleanText(string(chain[i].key))
		switch {
		case !chain[i].end.IsZero():
			what = "waits for the end of task " + chain[i].end.String()
		case chain[i].key == "":
			what = "says that it waits"
		}
		switch does := chain[i].does; {
		case i == 0 && does != waits:
			// It was described before.
		case does == holds:
			fmt.Fprintf(&b, "%s, which %s holds", apart(chain[i-1].key, chain[i].key), name)
		case does == awaited && i > 0 && !chain[i-1].end.IsZero():
			b.WriteString(whoHas(&chain[i].Party, chain[i-1].end))
		case does == awaited:
			fmt.Fprintf(&b, " for %s", name)
		case b.Len() == 0:
			fmt.Fprintf(&b, "%s %s", name, what)
		case flowOf(chain[i-1].Party) == flowOf(chain[i].Party):
			fmt.Fprintf(&b, "; %s itself %s", name, what)
		case chain[i-1].key != chain[i].key:
			fmt.Fprintf(&b, ", behind %s in line for %s", name, cleanText(string(chain[i].key)))
		default:
			fmt.Fprintf(&b, ", behind %s in line", name)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "."
}

// apart returns how a key relates to another one that blocks its waiter: , which lies under
// org:acme.
func apart(key, other interlock.Key) string {
	switch {
	case key == other:
		return ""
	case strings.HasPrefix(string(other), string(key)):
		return ", which covers " + cleanText(string(other))
	}
	return ", which lies under " + cleanText(string(other))
}

// whoHas returns where an awaited task is.
func whoHas(p *engine.Party, task interlock.TaskID) string {
	switch {
	case p.Task.IsZero():
		return fmt.Sprintf(", which %s has", agentName(p.Agent))
	case p.Agent == "" && p.Request == 0:
		return ", which nobody has"
	case p.Task == task:
		return ", which is in line"
	}
	return fmt.Sprintf(", which comes after %s", partyName(p))
}

// parkedAmong counts those of a list of holds that are parked.
func parkedAmong(held []interlock.Holder) (n int) {
	for i := range held {
		if held[i].Liveness == interlock.LiveParked {
			n++
		}
	}
	return n
}

func firstWaiter(view *engine.KeyView) string {
	w := firstInLine(view)
	if w == nil {
		return ""
	}
	if w.Task.IsZero() {
		return fmt.Sprintf(", first %s for %s", submitterName(w.Agent, w.Owner), short(w.Waited))
	}
	text := fmt.Sprintf(", first task %s of queue %s, which %s submitted, for %s", w.Task, quoteUnlessPlain(cleanText(w.Queue)), submitterName(w.Agent, w.Owner), short(w.Waited))
	if w.Dormant {
		text += "; it waits for a worker, and is in nobody's way"
	}
	return text
}

// partyName names one of the chain.
func partyName(p *engine.Party) string {
	switch {
	case p.Task.IsZero():
		return agentName(p.Agent)
	case p.Agent == "":
		return "task " + p.Task.String()
	}
	return fmt.Sprintf("task %s of %s", p.Task, agentName(p.Agent))
}

// onlyDormant reports whether all in line are tasks that wait for workers.
func onlyDormant(view *engine.KeyView) bool {
	return view.Length == len(view.Waiters) && !slices.ContainsFunc(view.Waiters, func(w engine.WaiterView) bool { return !w.Dormant })
}

func (c *call) tellWhy(what, name string, x *explanation, at interlock.At) {
	j := c.reply()
	j.text(what, name)
	j.text("text", x.text)
	writeChain(j, x.chain)
	if len(x.waits) > 0 {
		j.openArray("waits")
		for _, chain := range x.waits {
			j.open("")
			writeChain(j, chain)
			j.close()
		}
		j.closeArray()
	}
	if x.more > 0 {
		j.int("more_waits", int64(x.more))
	}
	writeAdvice(j, x.advice)
	c.send(http.StatusOK, j, at)
}

func writeChain(j *jsonOut, chain []link) {
	j.openArray("chain")
	for i := range chain {
		l := &chain[i]
		j.open("")
		writeParty(j, l.Agent, l.Session, l.Flow)
		writeTaskOf(j, "task", l.Task)
		writeTaskOf(j, "awaits", l.end)
		j.str("does", l.does)
		j.str("key", string(l.key))
		j.str("mode", l.mode.String())
		if l.since > 0 {
			j.ms("since_ms", l.since)
		}
		if l.liveness != 0 {
			j.str("liveness", l.liveness.String())
		}
		j.close()
	}
	j.closeArray()
}
