package engine_test

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// listenRig is a stand with a queue, and the calls of its listeners.
type listenRig struct {
	*stand
	worker interlock.SessionID
}

func newListening(t testing.TB) *listenRig {
	s := newStand()
	l := &listenRig{s, s.session(t)}
	s.step(&engine.SetQueue{Head: s.head(l.worker), Queue: interlock.TaskQueue{Name: "q"}})
	return l
}

// pull asks for a task that is not there, and listens.
func (l *listenRig) pull(sess interlock.SessionID) (id [16]byte) {
	id = l.id()
	l.step(&engine.Pull{Head: l.head(sess), ID: id, Leases: [][16]byte{l.id()}, Queue: "q", Max: 1, Attach: true})
	return id
}

// submit submits a task, and with attach listens for its end.
func (l *listenRig) submit(sess interlock.SessionID, attach bool) interlock.TaskID {
	id := l.id()
	l.step(&engine.Submit{Head: l.head(sess), Task: engine.TaskSpec{ID: id, TaskSpec: interlock.TaskSpec{
		Queue: "q",
	}}, Attach: attach})
	return id
}

func (l *listenRig) follow(sess interlock.SessionID, task interlock.TaskID) {
	l.step(&engine.FollowTask{Head: l.head(sess), Task: task, Attach: true})
}

// restart begins a term, without listeners.
func (l *listenRig) restart() {
	l.step(&engine.Recover{Head: engine.Head{At: l.now}, Epoch: 2})
}

// TestPullLimit goes to the limit of idle pulls, and one beyond.
func TestPullLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int
		alone bool
	}{
		{"of a session", interlock.MaxPulls, false},
		{"without a session", interlock.MaxListeners, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newListening(t)
			worker := l.worker
			if c.alone {
				worker = interlock.SessionID{}
			}
			var last [16]byte
			for range c.limit {
				last = l.pull(worker)
				l.want(t, engine.Queued)
			}
			l.pull(worker)
			l.refusedWith(t, interlock.CodeTooManyWaiters)
			l.step(&engine.Leave{Head: l.head(worker), Ticket: interlock.TicketID(last)})
			l.want(t, engine.Done)
			l.pull(worker)
			l.want(t, engine.Queued)
			l.pull(worker)
			l.refusedWith(t, interlock.CodeTooManyWaiters)
			l.pull(l.session(t))
			l.want(t, engine.Queued)
			l.restart()
			l.pull(worker)
			l.want(t, engine.Queued)
		})
	}
}

// TestFollowLimit goes to the limits of followers of tasks, and one beyond. A task that could
// not be followed is not submitted.
func TestFollowLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int
		alone bool
	}{
		{"of a session", interlock.MaxFollows, false},
		{"without a session", interlock.MaxListeners, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newListening(t)
			asker := l.session(t)
			if c.alone {
				asker = interlock.SessionID{}
			}
			var last interlock.TaskID
			for range c.limit {
				last = l.submit(asker, true)
				l.want(t, engine.Done)
			}
			l.submit(asker, true)
			l.refusedWith(t, interlock.CodeTooManyWaiters)
			other := l.submit(asker, false)
			l.want(t, engine.Done)
			l.follow(asker, other)
			l.refusedWith(t, interlock.CodeTooManyWaiters)
			l.step(&engine.Leave{Head: l.head(asker), Ticket: interlock.TicketID(last)})
			l.want(t, engine.Done)
			l.follow(asker, other)
			l.want(t, engine.Done)
			l.follow(asker, other)
			l.refusedWith(t, interlock.CodeTooManyWaiters)
			l.restart()
			l.follow(asker, other)
			l.want(t, engine.Done)
		})
	}
}

// TestFollowerLimit has as many sessions follow one task as may, and one more.
func TestFollowerLimit(t *testing.T) {
	l := newListening(t)
	task := l.submit(l.worker, false)
	for i := range interlock.MaxFollowers {
		sess := interlock.SessionID{}
		if i%2 == 0 {
			sess = l.worker
		}
		l.follow(sess, task)
		l.want(t, engine.Done)
	}
	l.follow(l.session(t), task)
	l.refusedWith(t, interlock.CodeTooManyWaiters)
	l.step(&engine.ChangeTask{Head: l.head(l.worker), Task: task, Change: engine.CancelTask})
	if told := len(l.out.Effects) - 1; told != interlock.MaxFollowers {
		t.Errorf("%d are told of the end of the task", told)
	}
	task = l.submit(l.worker, false)
	l.follow(l.worker, task)
	l.want(t, engine.Done)
}

// BenchmarkEndListening ends a session that listens for much, beside others: a pull or a
// follow costs the same however many there are.
func BenchmarkEndListening(b *testing.B) {
	for _, n := range []int{interlock.MaxPulls / 16, interlock.MaxPulls / 4, interlock.MaxPulls} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				l := newListening(b)
				sess := l.session(b)
				task := l.submit(interlock.SessionID{}, false)
				l.step(&engine.SetQueue{Head: l.head(l.worker), Queue: interlock.TaskQueue{Name: "q", Paused: true}})
				for range n {
					l.pull(sess)
					l.follow(sess, task)
				}
				b.StartTimer()
				l.step(&engine.CloseSession{Head: l.head(sess)})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/each")
		})
	}
}
