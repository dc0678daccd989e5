package train

import "slices"

// lanes divides the queue. Without Config.Lanes it is one lane. Else a submission joins the lane that its impacts
// overlap with, or begins one. A submission that overlaps with several lanes waits until all but one of them are
// empty, and so do the later ones that overlap with any of these lanes: so it cannot be overtaken for ever.
func (t *Train) lanes() [][]Submission {
	if !t.config.Lanes || t.head.broken {
		if len(t.order) == 0 {
			return nil
		}
		return [][]Submission{t.order}
	}
	type lane struct {
		list    []Submission
		impacts []string
		all     bool // everything can be affected
		closed  bool // a submission waits for it
		behind  bool // it does not run: it waits for others
	}
	overlap := func(l *lane, s Submission) bool {
		return l.all || len(s.Impacts) == 0 ||
			slices.ContainsFunc(s.Impacts, func(i string) bool { return slices.Contains(l.impacts, i) })
	}
	var all []*lane
	for _, s := range t.order {
		var hit []*lane
		for _, l := range all {
			if overlap(l, s) {
				hit = append(hit, l)
			}
		}
		target := &lane{}
		switch {
		case len(hit) == 1 && !hit[0].closed:
			target = hit[0]
		default:
			target.behind = len(hit) > 0
			for _, l := range hit {
				l.closed = true
			}
			all = append(all, target)
		}
		target.list = append(target.list, s)
		target.all = target.all || len(s.Impacts) == 0
		target.impacts = append(target.impacts, s.Impacts...)
	}
	var lists [][]Submission
	for _, l := range all {
		if !l.behind {
			lists = append(lists, l.list)
		}
	}
	return lists
}

// laneOf returns the lane of a submission, or nil.
func (t *Train) laneOf(id ID) []Submission {
	for _, lane := range t.lanes() {
		if holds(lane, id) {
			return lane
		}
	}
	return nil
}

// holds reports whether a list has a submission.
func holds(list []Submission, id ID) bool {
	return slices.ContainsFunc(list, func(s Submission) bool { return s.ID == id })
}
