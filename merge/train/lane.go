package train

import "slices"

// able lists the submissions that may be in chains, in order, and reports whether they may land: those that are not
// held, or all, without those with a base that is not among them.
func (t *Train) able() (list []Submission, mayLand bool) {
	if list = t.stacked(t.held); len(list) > 0 || len(t.held) == 0 {
		return list, true
	}
	return t.stacked(nil), false
}

// stacked lists the submissions that are not held and have their bases before them.
func (t *Train) stacked(held map[ID]bool) (list []Submission) {
	for _, s := range t.order {
		if base := t.after[s.ID]; !held[s.ID] && (base == "" || holds(list, base)) {
			list = append(list, s)
		}
	}
	return list
}

// together reports whether all submissions are one lane.
func (t *Train) together() bool { return !t.config.Lanes || t.head.broken || len(t.held) > 0 }

// lanes divides the submissions that may be in chains. Without Config.Lanes they are one lane. Else a submission joins
// the lane that its impacts overlap with or that has its base, or begins one. A submission that belongs to several
// lanes waits until all but one of them are empty, and so do the later ones that overlap with any of these lanes: so it
// cannot be overtaken for ever.
func (t *Train) lanes() [][]Submission {
	able, _ := t.able()
	if t.together() {
		if len(able) == 0 {
			return nil
		}
		return [][]Submission{able}
	}
	type lane struct {
		list    []Submission
		impacts []string
		all     bool // everything can be affected
		closed  bool // a submission waits for it
		behind  bool // it does not run: it waits for others
	}
	overlap := func(l *lane, s Submission) bool {
		return l.all || len(s.Impacts) == 0 || t.after[s.ID] != "" && holds(l.list, t.after[s.ID]) ||
			slices.ContainsFunc(s.Impacts, func(i string) bool { return slices.Contains(l.impacts, i) })
	}
	var all []*lane
	for _, s := range able {
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

// laneOf returns the lane of a submission, or nil. Without lanes it has all that wait, so that what is known about
// their chains is void when one of them lands.
func (t *Train) laneOf(id ID) []Submission {
	if t.together() && holds(t.order, id) {
		return t.order
	}
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
