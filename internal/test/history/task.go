package history

import "slices"

// taskModel is the history of one submission.
type taskModel struct {
	id      string // of the task
	attempt int
	done    bool
	acks    []*Op
}

// tasks checks that each submission is one task and each task one effect: attempts are numbered
// upwards, and one of them at most is acknowledged. An acknowledgement's addition to a counter
// is compared by documents; here it is never more than one.
func (v *verdict) tasks() {
	byID, byRequest := map[string]*taskModel{}, map[string]*taskModel{}
	byLease := map[string]*taskModel{}
	asked := map[string]bool{}
	for _, op := range v.ops {
		if op.Kind == Submit {
			asked[op.ID] = true
		}
	}
	for _, op := range v.answered() {
		if x := op.Task; x != nil {
			t := byRequest[x.Request]
			switch {
			case !asked[x.Request]:
				v.problem("a task that nobody submitted: %v", op)
			case t == nil:
				t = &taskModel{id: x.ID}
				byID[x.ID], byRequest[x.Request] = t, t
			case t.id != x.ID:
				v.problem("an effect happens twice: submission %s is task %s, and task %s in %v", x.Request, t.id, x.ID, op)
			}
			if op.Kind == Pull && t != nil {
				if t.done {
					v.problem("a task was handed out after it was done: %v", op)
				}
				if op.exact() && x.Attempt <= t.attempt {
					v.problem("attempt %d was handed out after attempt %d: %v", x.Attempt, t.attempt, op)
				}
				t.attempt = max(t.attempt, x.Attempt)
				byLease[op.Granted.Lease] = t
			}
		}
		if op.Kind == Ack && op.OK() {
			t := byLease[op.Lease]
			if t == nil {
				v.problem("an acknowledgement of nothing: %v", op)
				continue
			}
			if slices.ContainsFunc(t.acks, func(a *Op) bool { return a.Lease != op.Lease }) {
				v.problem("an effect happened twice: task %s was done by %v and by %v", t.id, t.acks[0], op)
			}
			t.acks, t.done = append(t.acks, op), true
		}
	}
	effects := map[string]bool{} // counters of acknowledgements
	for _, op := range v.ops {
		if op.Kind == Ack {
			for _, w := range op.Writes {
				effects[w.Key] = true
			}
		}
	}
	for _, op := range v.ops {
		for _, d := range op.Docs {
			if effects[d.Key] && d.Count > 1 {
				v.problem("an effect happened %d times: %v", d.Count, op)
			}
		}
	}
}
