package prose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/problem"
)

const (
	maxChain    = 16 // bounds how far why follows a chain of waits
	MaxToldWait = 16 // bounds how many waits of an agent why tells
)

// Link is one step of the chain that why shows: what a party does with a key.
type Link struct {
	engine.FlowRef
	Does     string // holds, waits, or awaited: another declares that it waits for it
	Key      interlock.Key
	Mode     interlock.Mode
	Liveness interlock.Liveness // of a holder
	Since    time.Duration      // held or waited for
	End      interlock.TaskID   // of the task that it waits for
}

const (
	holds   = "holds"
	waits   = "waits"
	awaited = "awaited"
)

// AdviceToClaim is the advice to acquire a key, for a caller that may claim it in a mode; 0:
// in none, for a problem. Other advice stays as it is.
func AdviceToClaim(advice interlock.Advice, mode interlock.Mode, problem string) interlock.Advice {
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

// ExplainKey returns why a key is as it is.
func ExplainKey(view *engine.KeyView, edges []engine.WaitEdge) *Explanation {
	key := cleanText(string(view.Key))
	if len(view.Holders) == 0 && view.Length == 0 && !isDry(view.Capacity) {
		text := key +
			" is free: neither it nor a conflicting key above or below it is held, and there are no waiters."
		if c := view.Capacity; c != nil {
			text += " It has " + roomText(c) + "."
			if len(c.Groups) > 0 {
				text += " Of these " + groupsText(c) + "."
			}
		}
		return &Explanation{Text: text, Advice: interlock.Advice{Action: interlock.ActRetry, Message: "acquire it"}}
	}
	var b strings.Builder
	var chain []Link
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
		chain = append(chain, Link{
			FlowRef: engine.FlowRef{Agent: h.Agent, Session: h.Session, Flow: h.Flow}, Does: holds, Key: h.Key, Mode: h.Mode,
			Liveness: h.Liveness, Since: h.Held,
		})
	case conflict.Kind == interlock.RateUsed: // what was taken has no holder any more
		b.WriteString(situation(conflict) + ". ")
	default:
		fmt.Fprintf(&b, "%s has no holder at the moment. ", key)
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
		fmt.Fprintf(&b, "%s in line%s. ", Count(view.Length, "waiter is", "waiters are"), firstWaiter(view))
	default:
		b.WriteString("It has no waiters. ")
	}
	if view.HoldTime > 0 {
		fmt.Fprintf(&b, "Similar keys are usually held for %s. ", short(view.HoldTime))
	}
	if len(chain) > 0 {
		chain = follow(chain, waysOn(edges))
		b.WriteString(chainText(chain))
	}
	x := &Explanation{Text: strings.TrimSpace(b.String()), Chain: chain}
	if gate != nil {
		x.Advice = gate.advice()
	} else {
		x.Advice = keyAdvice(view, conflict, chain)
	}
	return x
}

// conflictOfView returns the conflict of a newcomer at a key.
func conflictOfView(view *engine.KeyView) *engine.Conflict {
	c := &engine.Conflict{Conflict: interlock.Conflict{
		Key: view.Key, Kind: interlock.OtherAgent, Holders: view.Holders, More: view.More, Capacity: view.Capacity,
		Line: interlock.Line{Length: view.Length},
	}}
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
		// Holders of permits block only by the numbers.
		if c.Kind = interlock.CapacityUsed; view.Capacity.Used < view.Capacity.Permits && isDry(view.Capacity) ||
			view.Capacity.Permits == 0 {
			c.Kind = interlock.RateUsed
		}
	}
	return c
}

func keyAdvice(view *engine.KeyView, c *engine.Conflict, chain []Link) interlock.Advice {
	wait := func(after time.Duration, format string, args ...any) interlock.Advice {
		return interlock.Advice{Action: interlock.ActWait, RetryAfter: after, Message: fmt.Sprintf(format, args...)}
	}
	if c.Kind == interlock.RateUsed && isDry(view.Capacity) {
		return wait(
			atLeastASecond(refill(c)), "the next token arrives in %s: wait in line for it", short(refill(c)),
		)
	}
	if len(view.Holders) == 0 && view.Length > 0 && onlyDormant(view) {
		return interlock.Advice{
			Action: interlock.ActRetry,
			Message: "acquire it: the only waiters are tasks without a worker; if they wait too long, start workers for " +
				"their queue",
		}
	}
	if len(view.Holders) == 0 && len(chain) > 1 {
		return wait(0, "%s", inTheEnd(chain))
	}
	if len(view.Holders) == 0 {
		return wait(time.Second, "the key goes to the first waiter: wait in line for it")
	}
	h := &view.Holders[0]
	switch {
	case c.Kind == interlock.LockDelayed:
		return wait(atLeastASecond(h.ExpiresIn), "it opens automatically in %s: wait in line for it; if no "+
			"write of %s can still arrive, an operator can revoke fence %s",
			short(h.ExpiresIn), AgentName(h.Agent), h.Fence)
	case h.Liveness == interlock.LiveParked:
		return interlock.Advice{Action: interlock.ActAskHuman, Message: fmt.Sprintf(
			"a human has to decide: ask the operator of %s, or work on something else; the parking ends in %s at the latest",
			AgentName(h.Agent), short(h.ExpiresIn),
		)}
	case h.Liveness == interlock.Suspect || h.Liveness == interlock.LiveGrace:
		return wait(
			atLeastASecond(h.ExpiresIn), "%s; the key is passed on in %s at the latest: wait in line for it",
			over(h), short(h.ExpiresIn),
		)
	case len(chain) > 1:
		return wait(0, "%s", inTheEnd(chain))
	case h.Held > time.Hour:
		return interlock.Advice{Action: interlock.ActAskHuman, Message: fmt.Sprintf(
			"%s is live, and has held it for %s: ask its operator, or revoke fence %s", AgentName(h.Agent), short(h.Held),
			h.Fence,
		)}
	case view.Length == 0 &&
		(c.Kind == interlock.RateUsed || c.Kind == interlock.CapacityUsed && view.Capacity.Used < view.Capacity.Permits):
		return interlock.Advice{
			Action: interlock.ActRetry, Message: "acquire it: some are free, unless they are reserved for a group",
		}
	}
	return wait(problem.Of(interlock.CodeHeld).After, "wait in line for it, or work on something else")
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
		return e.Key == view.Key && w.Agent == first.Agent && w.Session == first.Session && w.Flow == first.Flow &&
			w.Task == first.Task
	})
	if i < 0 {
		return nil
	}
	return &edges[i]
}

// inTheEnd returns what to do about the last of a chain.
func inTheEnd(chain []Link) string {
	last := &chain[len(chain)-1]
	switch {
	case last.Key == "":
		return fmt.Sprintf("the root blocker is %s: look at that agent", partyName(&last.FlowRef))
	case last.Does == waits:
		return fmt.Sprintf(
			"the root blocker is %s, which waits for %s", partyName(&last.FlowRef),
			cleanText(string(last.Key)),
		)
	}
	return fmt.Sprintf(
		"the root blocker is %s with %s: if it cannot finish, an operator can revoke its lease",
		AgentName(last.Agent), cleanText(string(last.Key)),
	)
}

// Explanation is the answer to a question why.
type Explanation struct {
	Text   string
	Chain  []Link
	Advice interlock.Advice
	Waits  [][]Link // of an agent: the chain of each of its waits, the first of them chain
	More   int      // waits of the agent that the others leave out
}

// ExplainAgent returns what an agent has and waits for.
func ExplainAgent(agent string, held []interlock.Holder, edges []engine.WaitEdge) *Explanation {
	name := AgentName(agent)
	var b strings.Builder
	switch len(held) {
	case 0:
		fmt.Fprintf(&b, "%s holds nothing. ", name)
	case 1:
		fmt.Fprintf(
			&b, "%s holds %s (%s) for %s. ", name, cleanText(string(held[0].Key)), modeText(&held[0]), short(held[0].Held),
		)
	default:
		fmt.Fprintf(
			&b, "%s holds %d keys, the first of them %s for %s. ", name, len(held), cleanText(string(held[0].Key)),
			short(held[0].Held),
		)
	}
	if n := parkedAmong(held); n > 0 {
		fmt.Fprintf(&b, "%s parked until a human decides. ", Count(n, "of them is", "of them are"))
	}
	waitedFor := map[engine.FlowRef]bool{}
	for i := range edges {
		if e := &edges[i]; e.Blocker.Agent == agent && e.Waiter.Agent != agent {
			waitedFor[flowOf(e.Waiter)] = true
		}
	}
	if n := len(waitedFor); n > 0 {
		fmt.Fprintf(&b, "%s for it. ", Count(n, "other waits", "others wait"))
	}
	waits := waitsOf(agent, edges)
	if len(waits) == 0 {
		b.WriteString("It is not waiting.")
		return &Explanation{Text: b.String(), Advice: idleAdvice(held)}
	}
	x := &Explanation{More: max(0, len(waits)-MaxToldWait)}
	ways := waysOn(edges)
	for _, e := range waits[:len(waits)-x.More] {
		chain := follow(chainFrom(e), ways)
		x.Waits = append(x.Waits, chain)
		b.WriteString(chainText(chain) + " ")
	}
	if x.More > 0 {
		fmt.Fprintf(&b, "It has %s.", Count(x.More, "more wait", "more waits"))
	}
	x.Text, x.Chain = strings.TrimSpace(b.String()), x.Waits[0]
	x.Advice = interlock.Advice{Action: interlock.ActWait, Message: hangsOn(x.Waits)}
	return x
}

// waitsOf returns one edge of each wait of an agent, in the order of arrival. A wait is for one
// key, one task or one agent. A blocking holder explains more than a waiter ahead.
func waitsOf(agent string, edges []engine.WaitEdge) (waits []*engine.WaitEdge) {
	type wait struct {
		waiter engine.FlowRef
		key    interlock.Key
		end    interlock.TaskID
		target engine.FlowRef // of a declared wait
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
func hangsOn(chains [][]Link) string {
	const most = 3
	var names []string
	for _, chain := range chains {
		if name := partyName(&chain[len(chain)-1].FlowRef); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return fmt.Sprintf("the root blocker is %s: when it releases, the line moves", names[0])
	}
	list := enumerated(names)
	if n := len(names) - most; n > 0 {
		list = fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return fmt.Sprintf("it waits in several lines, with the root blockers %s: when one of them releases, its "+
		"line moves", list)
}

// idleAdvice is about an agent that waits for nothing.
func idleAdvice(held []interlock.Holder) interlock.Advice {
	if len(held) == 0 {
		return interlock.Advice{
			Action: interlock.ActRetry, Message: "it is not blocked: if it seems stuck, look at the agent itself",
		}
	}
	h := &held[0]
	switch {
	case h.Liveness == interlock.Suspect || h.Liveness == interlock.LiveGrace:
		message := fmt.Sprintf("%s, and loses its leases in %s at the latest", over(h), short(h.ExpiresIn))
		if h.Liveness == interlock.Suspect {
			message += ", unless it returns"
		}
		return interlock.Advice{Action: interlock.ActWait, RetryAfter: atLeastASecond(h.ExpiresIn), Message: message}
	case parkedAmong(held) == len(held):
		return interlock.Advice{
			Action: interlock.ActAskHuman, Message: "it waits for a human decision: ask the person who has to decide",
		}
	}
	return interlock.Advice{Action: interlock.ActWait, Message: "it is working: let it finish"}
}

// waysOn returns for each party the edge that best explains its wait: a holder rather than a waiter
// ahead. A session as a whole, which a declared wait may be for, waits where a flow of it does.
func waysOn(edges []engine.WaitEdge) map[engine.FlowRef]*engine.WaitEdge {
	next := map[engine.FlowRef]*engine.WaitEdge{}
	for i := range edges {
		e := &edges[i]
		flow := flowOf(e.Waiter)
		parties := []engine.FlowRef{flow}
		if flow.Session != "" && flow.Flow != "" {
			parties = append(parties, engine.FlowRef{Agent: flow.Agent, Session: flow.Session})
		}
		for _, p := range parties {
			if have := next[p]; have == nil || have.Ahead && !e.Ahead {
				next[p] = e
			}
		}
	}
	return next
}

// follow goes from the last of the chain to the party that it waits for, and so on.
func follow(chain []Link, next map[engine.FlowRef]*engine.WaitEdge) []Link {
	seen := map[engine.FlowRef]bool{}
	for i := range len(chain) - 1 {
		seen[flowOf(chain[i].FlowRef)] = true
	}
	for len(chain) < maxChain {
		at := chain[len(chain)-1]
		e := next[flowOf(at.FlowRef)]
		if e == nil || seen[flowOf(at.FlowRef)] {
			break
		}
		seen[flowOf(at.FlowRef)] = true
		if at.Does != waits || at.Key != e.Key {
			chain = append(chain, waitOf(e))
		}
		chain = append(chain, blockerOf(e))
	}
	return chain
}

// chainFrom is the chain of one wait, as far as its edge goes.
func chainFrom(e *engine.WaitEdge) []Link { return []Link{waitOf(e), blockerOf(e)} }

// blockerOf is the blocker of an edge.
func blockerOf(e *engine.WaitEdge) Link {
	does := holds
	switch {
	case e.Key == "":
		does = awaited
	case e.Ahead:
		does = waits
	}
	blocker := e.Blocker
	if blocker == (engine.FlowRef{}) { // the task has no worker, nor is it in line
		blocker.Task = e.Task
	}
	return Link{FlowRef: blocker, Does: does, Key: e.Has.Key, Mode: e.Has.Mode}
}

// waitOf is the waiter of an edge.
func waitOf(e *engine.WaitEdge) Link {
	return Link{FlowRef: e.Waiter, Does: waits, Key: e.Key, Mode: e.Mode, Since: e.Waited, End: e.Task}
}

// flowOf makes all requests of one flow the same party. Those without a session
// stay apart, by the number of their request.
func flowOf(p engine.FlowRef) engine.FlowRef {
	if p.Session != "" {
		p.Request = 0
	}
	return p
}

// chainText reads: billing-7 waits for org:acme, which support-2 holds; support-2
// itself waits for account:1, behind audit-1 in line; audit-1 itself declares a
// waits for review-3.
func chainText(chain []Link) string {
	var b strings.Builder
	for i := range chain {
		name, what := partyName(&chain[i].FlowRef), "waits for "+cleanText(string(chain[i].Key))
		switch {
		case !chain[i].End.IsZero():
			what = "waits for the end of task " + chain[i].End.String()
		case chain[i].Key == "":
			what = "declares a wait"
		}
		switch does := chain[i].Does; {
		case i == 0 && does != waits:
			// It was described before.
		case does == holds:
			fmt.Fprintf(&b, "%s, which %s holds", apart(chain[i-1].Key, chain[i].Key), name)
		case does == awaited && i > 0 && !chain[i-1].End.IsZero():
			b.WriteString(whoHas(&chain[i].FlowRef, chain[i-1].End))
		case does == awaited:
			fmt.Fprintf(&b, " for %s", name)
		case b.Len() == 0:
			fmt.Fprintf(&b, "%s %s", name, what)
		case flowOf(chain[i-1].FlowRef) == flowOf(chain[i].FlowRef),
			chain[i-1].Does == awaited && chain[i-1].Session == chain[i].Session: // any flow of it
			fmt.Fprintf(&b, "; %s itself %s", name, what)
		case chain[i-1].Key != chain[i].Key:
			fmt.Fprintf(&b, ", behind %s in line for %s", name, cleanText(string(chain[i].Key)))
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
func whoHas(p *engine.FlowRef, task interlock.TaskID) string {
	switch {
	case p.Task.IsZero():
		return fmt.Sprintf(", which %s is running", AgentName(p.Agent))
	case p.Agent == "" && p.Request == 0:
		return ", which has no worker"
	case p.Task == task:
		return ", which is in line"
	}
	return fmt.Sprintf(", which waits behind %s", partyName(p))
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
	text := fmt.Sprintf(
		", first task %s of queue %s, which %s submitted, for %s", w.Task, quoteUnlessPlain(cleanText(w.Queue)),
		submitterName(w.Agent, w.Owner), short(w.Waited),
	)
	if w.Dormant {
		text += "; it waits for a worker, and blocks no other request"
	}
	return text
}

// partyName names one of the chain.
func partyName(p *engine.FlowRef) string {
	switch {
	case p.Task.IsZero():
		return AgentName(p.Agent)
	case p.Agent == "":
		return "task " + p.Task.String()
	}
	return fmt.Sprintf("task %s of %s", p.Task, AgentName(p.Agent))
}

// onlyDormant reports whether all in line are tasks that wait for workers.
func onlyDormant(view *engine.KeyView) bool {
	return view.Length == len(view.Waiters) &&
		!slices.ContainsFunc(view.Waiters, func(w engine.WaiterView) bool { return !w.Dormant })
}
