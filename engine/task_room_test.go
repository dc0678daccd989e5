package engine

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// stock drives an engine with one queue, to see what its tasks count.
type stock struct {
	t      *testing.T
	e      *Engine
	ids    uint64
	out    Output
	others int // that tasks count which are not there
}

func newStock(t *testing.T) *stock {
	s := &stock{t: t, e: New()}
	s.step(&Recover{Epoch: 1})
	s.step(&SetQueue{Queue: interlock.TaskQueue{Name: "q", MaxAttempts: 100}})
	return s
}

func (s *stock) id() (id [16]byte) {
	s.ids++
	binary.BigEndian.PutUint64(id[8:], s.ids)
	return id
}

// step carries out a command, and makes sure that what the tasks count is their sum.
func (s *stock) step(cmd Command) *Effect {
	s.t.Helper()
	h := cmd.Header()
	h.At, h.Namespace, h.From = 1e18, "default", "me"
	s.out = Output{}
	s.e.Step(cmd, &s.out)
	if sp := s.e.Namespaces["default"]; sp != nil {
		s.check(&sp.Tasks)
	}
	for i := range s.out.Effects {
		if s.out.Effects[i].To == "me" {
			return &s.out.Effects[i]
		}
	}
	return nil
}

func (s *stock) check(l *store.Tasks) {
	s.t.Helper()
	sum, done := s.others, 0
	for _, t := range l.Known {
		sum += t.Cost()
		if t.State == interlock.TaskDone {
			done += t.Cost()
		}
	}
	if sum != l.Bytes || done != l.Settled {
		s.t.Fatalf("the tasks count %d, of that done ones %d: they are %d and %d", l.Bytes, l.Settled, sum, done)
	}
}

func (s *stock) tasks() *store.Tasks { return &s.e.Namespaces["default"].Tasks }

// fill leaves so many bytes of room.
func (s *stock) fill(room int) {
	s.others += interlock.MaxTaskBytes - room - s.tasks().Bytes
	s.tasks().Bytes = interlock.MaxTaskBytes - room
}

func (s *stock) submit(claims int) (interlock.TaskID, *Effect) {
	x := TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{
		Queue: "q", Payload: []byte(`"payload"`), Purpose: "a test", Group: "g",
	}}
	for i := range claims {
		x.Claims = append(x.Claims, interlock.Claim{Key: interlock.Key(strings.Repeat("k", 400) + strconv.Itoa(i))})
	}
	return x.ID, s.step(&Submit{Task: x, Agent: "a"})
}

func (s *stock) pull() interlock.LeaseID {
	s.t.Helper()
	eff := s.step(&Pull{ID: s.id(), Queue: "q", Max: 1, Leases: [][16]byte{s.id()}, Agent: "w"})
	if len(eff.Handed) != 1 {
		s.t.Fatalf("nothing is handed out: %+v", eff)
	}
	return eff.Handed[0].Lease.ID
}

func (s *stock) finish() interlock.TaskID {
	s.t.Helper()
	id, _ := s.submit(0)
	if eff := s.step(&Ack{Lease: s.pull(), Result: []byte(`"result"`)}); eff.Outcome != Done {
		s.t.Fatalf("not done: %+v", eff)
	}
	return id
}

func (s *stock) knows(id interlock.TaskID) bool { return s.tasks().Known[id] != nil }

// sameAfterSnapshot makes sure that a snapshot brings what the tasks count.
func (s *stock) sameAfterSnapshot() {
	s.t.Helper()
	var b bytes.Buffer
	if err := s.e.WriteSnapshot(&b); err != nil {
		s.t.Fatal(err)
	}
	e, err := ReadSnapshot(&b)
	if err != nil {
		s.t.Fatal(err)
	}
	if x := &e.Namespaces["default"].Tasks; e.Hash() != s.e.Hash() || x.Bytes != s.tasks().Bytes-s.others ||
		x.Settled != s.tasks().Settled {
		s.t.Errorf(
			"the tasks count %d and %d after a snapshot, instead of %d and %d", x.Bytes, x.Settled, s.tasks().Bytes-s.others,
			s.tasks().Settled,
		)
	}
}

func TestTasksCountAllThatIsRemembered(t *testing.T) {
	s := newStock(t)
	before := s.tasks().Bytes
	id, _ := s.submit(interlock.MaxClaims)
	if n := s.tasks().Bytes - before; n < interlock.MaxClaims*400 {
		t.Errorf("%d claims of 400 bytes count %d", interlock.MaxClaims, n)
	}
	before = s.tasks().Bytes
	for range interlock.MaxKeptAttempts + 4 {
		s.step(&Nack{Lease: s.pull(), Reason: strings.Repeat("r", interlock.MaxReasonBytes), Delay: -1})
	}
	if n := s.tasks().Bytes - before; n < interlock.MaxKeptAttempts*interlock.MaxReasonBytes {
		t.Errorf("%d attempts with long reasons count %d", interlock.MaxKeptAttempts, n)
	}
	s.step(&AskHuman{Lease: s.pull(), Question: interlock.Question{Text: "May it?", OnLimit: interlock.Denied}})
	s.step(&Answer{Task: id, Verdict: interlock.Approved, By: "eve", Reason: "why not"})
	s.sameAfterSnapshot()
	s.step(&Ack{Lease: s.pull(), Result: []byte(`1`)})
	s.sameAfterSnapshot()
	s.step(&ChangeTask{Task: id, Change: DiscardTask})
	if n := s.tasks().Bytes; n != 0 {
		t.Errorf("no task counts %d", n)
	}
}

// TestDoneTasksMakeRoom: for new ones, oldest first, and nothing else does.
func TestDoneTasksMakeRoom(t *testing.T) {
	s := newStock(t)
	dead, _ := s.submit(0)
	s.step(&ChangeTask{Task: dead, Change: CancelTask, Reason: "a test"})
	one, two := s.finish(), s.finish()
	s.fill(interlock.TaskBytes / 2)
	if _, eff := s.submit(0); eff.Outcome != Done || s.knows(one) || !s.knows(two) {
		t.Errorf(
			"%s %s; the older done task is known: %v, the other one: %v", eff.Outcome, eff.Code, s.knows(one), s.knows(two),
		)
	}
	s.sameAfterSnapshot()
	s.fill(interlock.TaskBytes / 2)
	if _, eff := s.submit(8); eff.Code != interlock.CodeTooManyTasks || !s.knows(two) {
		t.Errorf("a task for which there is no room: %s %s; the done one is known: %v", eff.Outcome, eff.Code, s.knows(two))
	}
	s.submit(0)
	if s.knows(two) || !s.knows(dead) {
		t.Errorf("the done task is known: %v, the cancelled one: %v", s.knows(two), s.knows(dead))
	}
}

// TestFollowUpsCountTogether: an acknowledgement is refused when there is no room for
// all that it submits.
func TestFollowUpsCountTogether(t *testing.T) {
	s := newStock(t)
	s.submit(0)
	lease := s.pull()
	ack := &Ack{Lease: lease}
	for range 3 {
		ack.Tasks = append(ack.Tasks, TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{Queue: "q"}})
	}
	s.fill(2 * interlock.TaskBytes)
	if eff := s.step(ack); eff.Code != interlock.CodeTooManyTasks {
		t.Errorf("three tasks where there is room for two: %s %s", eff.Outcome, eff.Code)
	}
	s.fill(4 * interlock.TaskBytes)
	if eff := s.step(ack); eff.Outcome != Done {
		t.Errorf("three tasks where there is room for them: %s %s", eff.Outcome, eff.Code)
	}
}

// TestAttemptsAreForgottenForRoom: that one has failed is never refused, so where there
// is no room a task remembers only its last.
func TestAttemptsAreForgottenForRoom(t *testing.T) {
	s := newStock(t)
	id, _ := s.submit(0)
	for i := range 6 {
		if i == 5 {
			s.fill(0)
		}
		s.step(&Nack{Lease: s.pull(), Reason: "it fails", Delay: -1})
	}
	if n := len(s.tasks().Known[id].Past); n != 1 {
		t.Errorf("%d attempts are kept where there is no room", n)
	}
	s.sameAfterSnapshot()
}

// TestDroppedQueuesMakeRoom: one that is dropped is no queue of the namespace any more,
// though settled tasks of it are remembered.
func TestDroppedQueuesMakeRoom(t *testing.T) {
	s := newStock(t)
	id, _ := s.submit(0)
	s.step(&ChangeTask{Task: id, Change: CancelTask})
	for i := range interlock.MaxQueues - 1 {
		s.step(&SetQueue{Queue: interlock.TaskQueue{Name: strconv.Itoa(i)}})
	}
	one := &SetQueue{Queue: interlock.TaskQueue{Name: "one"}}
	if eff := s.step(one); eff.Code != interlock.CodeTooManyQueues {
		t.Errorf("one queue more: %s %s", eff.Outcome, eff.Code)
	}
	s.step(&DropQueue{Name: "q"})
	if eff := s.step(one); eff.Outcome != Done {
		t.Errorf("one instead of the dropped one: %s %s", eff.Outcome, eff.Code)
	}
	s.sameAfterSnapshot()
}
