package train

// headCheck is what is known about the checks of the head itself. Usually the head is a tree that passed. It is
// checked by itself after landings apart, and when submission after submission fails: then the fault may be a
// broken machine, or a head that was red from the start.
type headCheck struct {
	apart   int  // landings with unchecked trees since the last head that passed
	blames  int  // submissions that went back because of their checks, since any check passed
	fails   int  // failures of the present head
	running int  // checks of the head that run
	broken  bool // the head has failed more than Repeats times
}

// HeadFails reports whether the head itself fails its checks. While it does, no submission goes back because of
// its checks, all lanes are one, and a chain that passes may land past earlier submissions that fail: it is the
// repair. Call Recheck when the reason may have gone.
func (t *Train) HeadFails() bool { return t.head.broken }

// Recheck asks for another check of a head that fails.
func (t *Train) Recheck() {
	if t.head.broken {
		t.head.fails = 0
	}
}

// headWanted reports whether the head must be checked.
func (t *Train) headWanted() bool {
	h := t.head
	switch {
	case h.broken:
		return h.fails == 0
	default:
		return h.apart >= t.config.WholeEvery || t.holdsBlame() || h.fails > 0
	}
}

// holdsBlame reports whether a submission that fails must wait for a check of the head.
func (t *Train) holdsBlame() bool { return t.head.broken || t.head.blames >= t.config.BlamesInRow }

func (t *Train) headVerdict(r *run, passed bool) {
	if passed {
		t.headPassed(r.cover)
		return
	}
	t.head.fails++
	t.head.broken = t.head.broken || t.head.fails > t.config.Repeats
}

// headPassed notes that the head, as it was cover landings apart after the last one that passed, is good. If it
// had failed before, the failures of submissions may have had the same reason: they are forgotten.
func (t *Train) headPassed(cover int) {
	if t.head.broken || t.head.fails > 0 {
		t.facts.forgive()
	}
	t.head = headCheck{apart: max(0, t.head.apart-cover), running: t.head.running}
}
