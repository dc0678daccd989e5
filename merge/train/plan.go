package train

import "slices"

// Plan computes what to do next from the present state, and changes nothing. The same state has the same plan,
// except that a plan is empty once it has been carried out and reported.
func (t *Train) Plan() Plan {
	lanes := t.lanes()
	if _, mayLand := t.able(); mayLand {
		for _, lane := range lanes {
			if settle := t.settle(lane); len(settle) > 0 {
				return Plan{Settle: settle}
			}
		}
	}
	wanted := t.wanted(lanes)
	var p Plan
	start := func(c Check) {
		c.Number = t.next + uint64(len(p.Start))
		p.Start = append(p.Start, c)
	}
	if t.headWanted() && t.head.running == 0 {
		start(Check{Repeat: t.head.fails > 0})
	}
	for _, w := range wanted {
		if len(p.Start) < t.config.Runners && (w.node == nil || w.node.running == 0) {
			start(Check{Chain: w.chain, Repeat: w.node.failed(), batch: w.batch})
		}
	}
	// Checks that cannot matter any more end at once. Those that may still clear a failure end if their runners
	// are needed, the youngest first.
	var idle []uint64
	for number, r := range t.running {
		switch {
		case r.head:
		case r.node == nil:
			p.Cancel = append(p.Cancel, number)
		case !slices.ContainsFunc(wanted, func(w want) bool { return w.node == r.node }):
			idle = append(idle, number)
		}
	}
	slices.Sort(p.Cancel)
	slices.Sort(idle)
	slices.Reverse(idle)
	over := len(t.running) - len(p.Cancel) + len(p.Start) - t.config.Runners
	p.Cancel = append(p.Cancel, idle[:min(max(0, over), len(idle))]...)
	if over -= len(idle); over > 0 {
		p.Start = p.Start[:max(0, len(p.Start)-over)]
	}
	return p
}

// settle returns the outcomes that are due in a lane: all of the longest chain that passed, or the first
// submission if it must go back.
func (t *Train) settle(lane []Submission) []Outcome {
	var done, longest []Outcome
	n := t.facts
	for _, s := range lane {
		next := n.child(s.ID)
		base := t.after[s.ID]
		switch {
		case base != "" && !slices.ContainsFunc(done, func(o Outcome) bool { return o.ID == base && o.Reason == Landed }):
			// It waits for its base.
		case n.refuses(s.ID):
			done = append(done, Outcome{ID: s.ID, Reason: Conflicts})
			if n == t.facts {
				longest = slices.Clone(done)
			}
		case t.head.broken && !next.leadsToPass():
			// It waits, and a repair of the head may be behind it.
		case next == nil:
			return t.orBlame(longest, lane)
		default:
			n = next
			done = append(done, Outcome{ID: s.ID, Reason: Landed})
			if n.passed() {
				longest = slices.Clone(done)
				for i := range longest {
					longest[i].Apart = n.apart && longest[i].Reason == Landed
				}
			}
		}
	}
	return t.orBlame(longest, lane)
}

// orBlame returns the outcomes, or if there are none the blame of the lane's first submission, if its own tree has
// failed often enough.
func (t *Train) orBlame(outcomes []Outcome, lane []Submission) []Outcome {
	first := t.facts.child(lane[0].ID)
	if len(outcomes) == 0 && first != nil && first.refused {
		return []Outcome{{ID: lane[0].ID, Reason: Refused}}
	}
	if len(outcomes) > 0 || !first.failed() || first.fails <= t.config.Repeats || t.holdsBlame() {
		return outcomes
	}
	return []Outcome{{ID: lane[0].ID, Reason: FailsCheck}}
}

// want is a chain that is worth a check.
type want struct {
	chain []ID
	node  *node // nil if nothing is known about the chain
	batch bool
}

// wanted lists the most useful checks of all lanes, those that run included, at most as many as there are runners.
// The lanes take turns.
func (t *Train) wanted(lanes [][]Submission) []want {
	runners := t.config.Runners
	var lists [][]want
	for _, lane := range lanes {
		if len(lists) == runners {
			break
		}
		ids := make([]ID, len(lane))
		for i, s := range lane {
			ids[i] = s.ID
		}
		lists = append(lists, t.chains(ids, runners))
	}
	var all []want
	for i := 0; i < runners; i++ {
		for _, list := range lists {
			if i < len(list) && len(all) < runners {
				all = append(all, list[i])
			}
		}
	}
	return all
}

// chains lists at most limit useful checks of one lane, the most useful first. It assumes that suspects will go
// back: submissions with a failed tree right behind a chain that passed.
func (t *Train) chains(queue []ID, limit int) []want {
	var list []want
	for limit > len(list) {
		line := t.line(queue, limit)
		good, bad := line.bounds()
		switch {
		case bad == 0:
			return append(list, t.cars(line, good, limit-len(list))...)
		case bad == good+1:
			suspect := line.nodes[good]
			if suspect.fails <= t.config.Repeats && !suspect.refused {
				list = append(list, line.want(bad, false))
			}
			queue = without(queue, suspect.id)
		default:
			return append(list, t.split(queue, line, good, bad, limit-len(list))...)
		}
	}
	return list
}

// cars appends batch after batch behind what is known or being checked.
func (t *Train) cars(line line, good, limit int) []want {
	var list []want
	end := good
	for i := good + 1; i <= len(line.chain) && len(list) < limit; i++ {
		if n := line.nodes[i-1]; n != nil && n.running > 0 {
			list = append(list, line.want(i, n.batch))
			end = i
		}
	}
	for end < len(line.chain) && len(list) < limit {
		end = min(end+t.size, len(line.chain))
		list = append(list, line.want(end, true))
	}
	return list
}

// split cuts a failed chain into prefixes: those of lengths good+1 to bad-1 are unknown. One runner repeats the
// failed chain. Runners that are left check chains that leave out one suspect each.
func (t *Train) split(queue []ID, line line, good, bad, limit int) []want {
	var list []want
	var free []int
	for i := good + 1; i < bad; i++ {
		if n := line.nodes[i-1]; n != nil && n.running > 0 && len(list) < limit {
			list = append(list, line.want(i, false))
		} else {
			free = append(free, i)
		}
	}
	cuts := min(limit-len(list), len(free))
	for i := range cuts {
		// The middles of equal parts, so that one cut halves the chain.
		list = append(list, line.want(free[(2*i+1)*len(free)/(2*cuts)], false))
	}
	if len(list) < limit && line.nodes[bad-1].fails <= t.config.Repeats && !line.nodes[bad-1].refused {
		list = append(list, line.want(bad, false))
	}
	for i := good; i < bad && len(list) < limit; i++ {
		share := max(1, (limit-len(list))/(bad-i))
		for _, w := range t.chains(without(queue, line.chain[i]), share) {
			if !slices.ContainsFunc(list, func(o want) bool { return slices.Equal(o.chain, w.chain) }) {
				list = append(list, w)
			}
		}
	}
	return list
}

// line is a queue as far as a plan needs it: the chain of all that can be merged one after another, and what is
// known about each of its prefixes.
type line struct {
	chain []ID
	nodes []*node // nodes[i] is the chain that ends with chain[i], or nil
}

func (t *Train) line(queue []ID, limit int) line {
	var l line
	n, unknown := t.facts, 0
	for _, id := range queue {
		if base := t.after[id]; n.refuses(id) || base != "" && !slices.Contains(l.chain, base) {
			continue
		}
		n = n.child(id)
		if unknown++; n != nil {
			unknown = 0
		}
		if unknown > limit*t.size {
			break
		}
		l.chain = append(l.chain, id)
		l.nodes = append(l.nodes, n)
	}
	return l
}

// bounds returns the length of the longest prefix that passed, and of the shortest longer one that failed, or 0.
func (l line) bounds() (good, bad int) {
	for i, n := range l.nodes {
		switch {
		case n.passed():
			good, bad = i+1, 0
		case n.failed() && bad == 0:
			bad = i + 1
		}
	}
	return good, bad
}

func (l line) want(length int, batch bool) want {
	return want{chain: l.chain[:length:length], node: l.nodes[length-1], batch: batch}
}

func without(queue []ID, id ID) []ID {
	return slices.DeleteFunc(slices.Clone(queue), func(o ID) bool { return o == id })
}
