package server

import (
	"context"
	"testing"
	"time"

	"github.com/interlockdev/interlock/engine"
)

// crossingShard is a shard to which something happens just before it learns that a worker that hung up is
// idle no more.
type crossingShard struct {
	Shard
	before func()
}

func (s *crossingShard) Submit(cmds ...engine.Command) error {
	for _, cmd := range cmds {
		switch cmd.(type) {
		case *engine.Leave, *engine.Detach:
			s.before()
		}
	}
	return s.Shard.Submit(cmds...)
}

// A task that is handed out while its worker hangs up goes back at once, and has lost no
// attempt.
func TestHandOutCrossesHangUp(t *testing.T) {
	for _, session := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			race := &crossingShard{}
			d := newTaskDoor(t, func(cfg *Config) { race.Shard, cfg.Shard = cfg.Shard, race })
			var id string
			race.before = func() { id = d.submit(``) }
			body := `{"agent":"gone","wait_ms":50000}`
			if session {
				body = `{"session":"` + d.session("gone") + `","wait_ms":50000}`
			}
			ctx, hangUp := context.WithCancel(t.Context())
			gone := d.start(d.request("POST", "/v1/queues/fees/pull", body).WithContext(ctx))
			pass(time.Second)
			d.loose = true // a caller that left gets no answer
			hangUp()
			<-gone
			pulled := d.post("/v1/queues/fees/pull", `{"agent":"worker","wait_ms":1000}`).want(200).is("tasks.0.task.id", id)
			if n := pulled.num("tasks.0.task.attempt"); n != 1 {
				t.Errorf("it is attempt %v", n)
			}
		})
	}
}

// left is a shard with a next pull of a worker that hangs up while it is carried out.
type left struct {
	Shard
	hangUp func()
}

func (s *left) Submit(cmds ...engine.Command) error {
	err := s.Shard.Submit(cmds...)
	if _, pulls := cmds[0].(*engine.Pull); pulls && s.hangUp != nil {
		s.hangUp()
		s.hangUp = nil
	}
	return err
}

// A task that is handed out at once goes back, too, when its worker has hung up by then.
func TestHandOutAtOnceAfterHangUp(t *testing.T) {
	for _, wait := range []string{"", `,"wait_ms":1000`} {
		inBubble(t, func(t *testing.T) {
			race := &left{}
			d := newTaskDoor(t, func(cfg *Config) { race.Shard, cfg.Shard = cfg.Shard, race })
			id := d.submit(``)
			ctx, hangUp := context.WithCancel(t.Context())
			race.hangUp = hangUp
			d.loose = true // a caller that left gets no answer
			<-d.start(d.request("POST", "/v1/queues/fees/pull", `{"agent":"gone"`+wait+`}`).WithContext(ctx))
			pulled := d.post("/v1/queues/fees/pull", `{"agent":"worker","wait_ms":1000}`).want(200).is("tasks.0.task.id", id)
			if n := pulled.num("tasks.0.task.attempt"); n != 1 {
				t.Errorf("it is attempt %v", n)
			}
		})
	}
}
