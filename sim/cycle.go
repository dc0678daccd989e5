package sim

import "slices"

// thread is a flow of a session.
type thread struct {
	session uint64
	flow    string
}

func (r *request) thread() thread { return thread{r.session, r.flow} }

// searchEntries bounds how many entries of the journal a circle may stand. A step of the engine
// looks at a bounded number of objects for deadlocks; a longer search continues in the next
// step.
const searchEntries = 50

// cycle looks for flows that wait for each other's leases in a circle, for longer than a
// search takes. It follows only waits that surely do not end by themselves, for leases in
// full force.
func (a *audit) cycle(w *world, s *space) {
	var path []thread
	var done []thread
	var walk func(t thread) bool
	walk = func(t thread) bool {
		if slices.Contains(path, t) {
			return true
		}
		if slices.Contains(done, t) {
			return false
		}
		path = append(path, t)
		for _, r := range s.waiting {
			if r.session == 0 || r.thread() != t || r.any || r.declared || r.part || r.run {
				continue
			}
			for _, h := range s.holding {
				if h.session != 0 && h.phase == held && !h.offer && !h.task && !h.part && h.maxHold == 0 && r.stands(h) &&
					walk(h.thread()) {
					return true
				}
			}
		}
		path = path[:len(path)-1]
		done = append(done, t)
		return false
	}
	for _, r := range s.waiting {
		if r.session == 0 || !walk(r.thread()) {
			continue
		}
		if s.circle == 0 {
			s.circle = a.index
		}
		if a.index-s.circle > searchEntries {
			w.fail(
				"I6", "after index %d these flows wait for each other, and flows have since index %d: %v", a.index, s.circle, path,
			)
		}
		return
	}
	s.circle = 0
}

// falseVictim checks that r, which leaves the line for a deadlock, was in one: it would have
// waited for ever, even if every holder that waits for nothing released what it has, and then
// every waiter that is thereby granted, and so on. An uncertain event counts as never coming,
// so this finds some false victims and blames no true one.
func (a *audit) falseVictim(w *world, r *request) {
	s := r.space
	for _, t := range s.tasks {
		if !t.settled() {
			return // it may stand in line
		}
	}
	served := map[*request]bool{}
	most := s.mostUrgent()
	for again := true; again && !served[r]; {
		again = false
		for _, x := range s.waiting {
			if !served[x] && s.comes(x, served, most) {
				served[x], again = true, true
			}
		}
	}
	if served[r] {
		w.fail("I6", "at index %d %v is made a deadlock's victim, and would have been served", a.index, r)
	}
}

// comes reports whether a waiter is served once those are that are known to be.
func (s *space) comes(r *request, served map[*request]bool, most int) bool {
	if !r.plain() {
		return false
	}
	for _, h := range s.holding {
		if r.stands(h) && !s.givesBack(h, served) {
			return false
		}
	}
	for _, c := range r.claims {
		limit := capacity(c.Key)
		if limit == 0 {
			continue
		}
		used := c.Count
		for _, h := range s.holding {
			if together(r, h) || !s.givesBack(h, served) {
				for _, x := range h.claims {
					if x.Key == c.Key && x.Mode.Counts() {
						used += x.Count
					}
				}
			}
		}
		if used > limit {
			return false
		}
	}
	for _, o := range s.waiting {
		switch {
		case o == r || !r.touches(o):
		case served[o]:
			if !s.rests(o, served) {
				return false // it keeps what it gets
			}
		case !o.plain() || o.earliest(most) <= r.latest():
			return false // it may be ahead
		}
	}
	return true
}

// givesBack reports whether a holder waits for nothing but what is known to come, so that it
// can come to its end.
func (s *space) givesBack(h *request, served map[*request]bool) bool {
	return h.phase == held && !h.offer && !h.part && !h.task && s.rests(h, served)
}

// rests reports whether the holder of or waiter for r waits for nothing but what is known to
// come.
func (s *space) rests(r *request, served map[*request]bool) bool {
	for _, x := range s.waiting {
		if !served[x] && together(x, r) {
			return false
		}
	}
	return true
}
