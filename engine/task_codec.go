package engine

import (
	"cmp"
	"time"

	"github.com/interlockdev/interlock"
)

// Queues and tasks in events: lists of fields, as patterns are.

// Queue returns what an EvQueue registered.
func (ev *Event) Queue() (interlock.TaskQueue, error) { return decodeQueue(ev.Blob) }

// Task returns the queue and the kind of the task that an EvTask submitted.
func (ev *Event) Task() (queue, kind string, err error) {
	spec, err := decodeTask(ev)
	if err != nil {
		return "", "", err
	}
	return spec.queue, spec.kind, nil
}

func appendQueue(b []byte, q *interlock.TaskQueue) []byte {
	f := fields{b}
	f.text(1, q.Name)
	f.flag(2, q.Paused)
	f.flag(3, q.Drain)
	f.number(4, uint64(q.MaxAttempts))
	f.number(5, uint64(q.Backoff))
	f.number(6, uint64(q.MaxBackoff))
	f.number(7, uint64(q.TTL))
	f.number(8, uint64(q.Grace))
	f.number(9, uint64(q.MaxHold))
	f.number(10, uint64(q.Stall))
	f.number(11, uint64(q.MaxRunning))
	f.number(12, uint64(q.MaxTasks))
	for _, g := range q.Groups { // a name, then the numbers that belong to it
		f.text(13, g.Group)
		f.number(14, uint64(g.Weight))
		f.number(15, uint64(g.Max))
	}
	for i, list := range [][]string{q.Pull, q.Submit, q.Admin} {
		for _, entry := range list {
			f.text(uint64(16+i), entry)
		}
	}
	for _, entry := range q.Approvers {
		f.text(19, entry)
	}
	f.number(20, uint64(q.MinApprovals))
	return f.b
}

func decodeQueue(b []byte) (q interlock.TaskQueue, err error) {
	failed := false
	err = eachField(b, func(id, n uint64, s string) bool {
		switch id {
		case 1:
			q.Name = s
		case 2:
			q.Paused = true
		case 3:
			q.Drain = true
		case 4:
			q.MaxAttempts = int(n)
		case 5:
			q.Backoff = time.Duration(n)
		case 6:
			q.MaxBackoff = time.Duration(n)
		case 7:
			q.TTL = time.Duration(n)
		case 8:
			q.Grace = time.Duration(n)
		case 9:
			q.MaxHold = time.Duration(n)
		case 10:
			q.Stall = time.Duration(n)
		case 11:
			q.MaxRunning = int(n)
		case 12:
			q.MaxTasks = int(n)
		case 13:
			q.Groups = append(q.Groups, interlock.Share{Group: s})
		case 14, 15:
			if len(q.Groups) == 0 {
				failed = true
			} else if g := &q.Groups[len(q.Groups)-1]; id == 14 {
				g.Weight = int(n)
			} else {
				g.Max = int(n)
			}
		case 16:
			q.Pull = append(q.Pull, s)
		case 17:
			q.Submit = append(q.Submit, s)
		case 18:
			q.Admin = append(q.Admin, s)
		case 19:
			q.Approvers = append(q.Approvers, s)
		case 20:
			q.MinApprovals = int(n)
		default:
			return false
		}
		return true
	})
	if err == nil && (failed || q.Name == "") {
		err = errPolicy
	}
	return q, err
}

// taskSpec is what was said of a task when it was submitted.
type taskSpec struct {
	claims   []interlock.Claim
	payload  []byte
	purpose  string
	priority int32

	message bool // to the single writer of the key that it claims

	submitted Time
	*origin
	*extras
}

// extras are what few tasks have. Those that have nothing of it share one.
type extras struct {
	due        Time // 0: at once
	deadline   Time // 0: none
	attempts   int  // 0: the queue's, as of the others
	backoff    time.Duration
	maxBackoff time.Duration
	result     []byte // of one that is done
	approval   *approval
}

// approval is the last question about a task, and the answer.
type approval struct {
	text    string
	agent   string // the agent that requests it
	asked   Time
	limit   time.Duration // after which it answers itself; 0: never
	paused  time.Duration // since it was asked, while no answer was possible
	onLimit interlock.Verdict
	reads   []interlock.Read // what the asker had read
	askers  []string         // principals besides the submitter that cannot answer it

	given     []interlock.Endorsement // approvals so far, where one is not enough
	verdict   interlock.Verdict       // 0 while it is open
	by        string                  // the name that the answerer claims
	principal string                  // that answered; "" without credentials
	words     string                  // why
}

const (
	approvalBytes = 256 // that a question costs besides its texts and its reads
	readBytes     = 32  // that a read costs besides its key
	nameBytes     = 16  // that a principal costs besides its name
	givenBytes    = 48  // that one of several approvals costs besides its texts
)

// size is what it costs to remember.
func (a *approval) size() int {
	if a == nil {
		return 0
	}
	n := approvalBytes + len(a.text) + len(a.agent) + len(a.by) + len(a.principal) + len(a.words)
	for _, name := range a.askers {
		n += len(name) + nameBytes
	}
	for i := range a.given {
		n += len(a.given[i].Principal) + len(a.given[i].By) + len(a.given[i].Reason) + givenBytes
	}
	for i := range a.reads {
		n += len(a.reads[i].Key) + readBytes
	}
	return n
}

var noExtras = &extras{}

// extend changes the task's extras.
func (s *taskSpec) extend(change func(*extras)) {
	x := *s.extras
	change(&x)
	s.extras = &x
}

// kept returns extras to keep, which cost nothing if there is nothing in them.
func (x extras) kept() *extras {
	if x.due == 0 && x.deadline == 0 && x.attempts == 0 && x.backoff == 0 && x.maxBackoff == 0 && len(x.result) == 0 && x.approval == nil {
		return noExtras
	}
	kept := x
	return &kept
}

// revive drops a deadline that has passed.
func (s *taskSpec) revive(now Time) {
	if s.deadline != 0 && s.deadline <= now {
		s.extend(func(x *extras) { x.deadline = 0 })
	}
}

// describe fills an event EvTask, but for where the task stands.
func (s *taskSpec) describe(ev *Event) {
	f := fields{}
	f.text(1, s.queue)
	if s.kind != "" {
		f.text(2, s.kind)
	}
	if len(s.payload) > 0 {
		f.text(3, string(s.payload))
	}
	if s.due != 0 {
		f.number(4, uint64(s.due.Sub(s.submitted)))
	}
	if s.deadline != 0 {
		f.number(5, uint64(s.deadline.Sub(s.submitted)))
	}
	f.number(6, uint64(s.attempts))
	f.number(7, uint64(s.backoff))
	f.number(8, uint64(s.maxBackoff))
	if s.session != "" {
		f.text(9, s.session)
	}
	if len(s.result) > 0 {
		f.text(10, string(s.result))
	}
	if s.approval != nil {
		f.text(11, string(appendApproval(nil, s.approval, s.submitted)))
	}
	f.flag(12, s.message)
	if s.sender != "" {
		f.text(13, s.sender)
	}
	ev.Blob, ev.Claims, ev.Purpose, ev.Group, ev.Priority = f.b, s.claims, s.purpose, s.group, int(s.priority)
	ev.Agent, ev.Flow, ev.Actor = s.agent, s.flow, s.principal
}

// decodeTask reads what describe wrote.
func decodeTask(ev *Event) (*taskSpec, error) {
	s := &taskSpec{
		claims: ev.Claims, purpose: ev.Purpose, priority: int32(ev.Priority), submitted: ev.At,
		origin: &origin{address: address{group: ev.Group, agent: ev.Agent, flow: ev.Flow, principal: ev.Actor}},
	}
	var x extras
	var failed error
	err := eachField(ev.Blob, func(id, n uint64, text string) bool {
		switch id {
		case 1:
			s.queue = text
		case 2:
			s.kind = text
		case 3:
			s.payload = []byte(text)
		case 4:
			x.due = ev.At.Add(time.Duration(n))
		case 5:
			x.deadline = ev.At.Add(time.Duration(n))
		case 6:
			x.attempts = int(n)
		case 7:
			x.backoff = time.Duration(n)
		case 8:
			x.maxBackoff = time.Duration(n)
		case 9:
			s.session = text
		case 10:
			x.result = []byte(text)
		case 11:
			x.approval, failed = decodeApproval([]byte(text), ev.At)
		case 12:
			s.message = true
		case 13:
			s.sender = text
		default:
			return false
		}
		return true
	})
	s.extras = x.kept()
	if err == nil && (s.queue == "" || s.message && len(s.claims) != 1) {
		err = errPolicy
	}
	return s, cmp.Or(err, failed)
}

// appendApproval writes a question and its answer, with times from base on.
func appendApproval(b []byte, a *approval, base Time) []byte {
	f := fields{b}
	f.text(1, a.text)
	if a.agent != "" {
		f.text(2, a.agent)
	}
	f.number(3, uint64(a.asked.Sub(base)))
	f.number(4, uint64(a.limit))
	f.number(5, uint64(a.onLimit))
	f.number(6, uint64(a.verdict))
	if a.by != "" {
		f.text(7, a.by)
	}
	if a.words != "" {
		f.text(8, a.words)
	}
	for _, r := range a.reads { // a key, then what belongs to it
		f.text(9, string(r.Key))
		f.number(10, uint64(r.Version))
		f.flag(11, r.Absent)
		f.flag(12, r.Present)
	}
	if a.principal != "" {
		f.text(13, a.principal)
	}
	for _, name := range a.askers {
		f.text(14, name)
	}
	f.number(15, uint64(a.paused))
	for i := range a.given { // a name, then what belongs to it
		x := &a.given[i]
		f.text(16, x.By)
		if x.Principal != "" {
			f.text(17, x.Principal)
		}
		if x.Reason != "" {
			f.text(18, x.Reason)
		}
	}
	return f.b
}

// appendPrincipal writes the principal that answers a question, or asks anew. The actor of
// the event is the same one; journals of earlier versions have that alone, and must fold to
// the states that they had.
func appendPrincipal(b []byte, principal string) []byte {
	f := fields{b}
	if principal != "" {
		f.text(1, principal)
	}
	return f.b
}

// decodePrincipal reads what appendPrincipal wrote.
func decodePrincipal(b []byte) (principal string, err error) {
	err = eachField(b, func(id, _ uint64, text string) bool {
		principal = text
		return id == 1
	})
	return principal, err
}

// decodeApproval reads what appendApproval wrote.
func decodeApproval(b []byte, base Time) (*approval, error) {
	a := &approval{asked: base}
	failed := false
	err := eachField(b, func(id, n uint64, text string) bool {
		switch id {
		case 1:
			a.text = text
		case 2:
			a.agent = text
		case 3:
			a.asked = base.Add(time.Duration(n))
		case 4:
			a.limit = time.Duration(n)
		case 5:
			a.onLimit = interlock.Verdict(n)
		case 6:
			a.verdict = interlock.Verdict(n)
		case 7:
			a.by = text
		case 8:
			a.words = text
		case 9:
			a.reads = append(a.reads, interlock.Read{Key: interlock.Key(text)})
		case 10, 11, 12:
			if len(a.reads) == 0 {
				failed = true
				return true
			}
			switch r := &a.reads[len(a.reads)-1]; id {
			case 10:
				r.Version = interlock.Version(n)
			case 11:
				r.Absent = true
			default:
				r.Present = true
			}
		case 13:
			a.principal = text
		case 14:
			a.askers = append(a.askers, text)
		case 15:
			a.paused = time.Duration(n)
		case 16:
			a.given = append(a.given, interlock.Endorsement{By: text})
		case 17, 18:
			if len(a.given) == 0 {
				failed = true
				return true
			}
			if x := &a.given[len(a.given)-1]; id == 17 {
				x.Principal = text
			} else {
				x.Reason = text
			}
		default:
			return false
		}
		return true
	})
	if err == nil && failed {
		err = errPolicy
	}
	return a, err
}
