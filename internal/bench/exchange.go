package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

const (
	// maxAnswer bounds the frames of a server, as in the client.
	maxAnswer = 64 << 20
	// reachTime is how long a server may take to accept a stream, and longPause the longest pause after all servers
	// were tried, as in the client.
	reachTime = 5 * time.Second
	longPause = time.Second
	// fullPause is before a server that was overloaded is asked again.
	fullPause = 100 * time.Millisecond
)

// place identifies an operation and its answer.
type place struct {
	slot uint32
	seq  uint64
}

// unanswered are operations by their places.
func unanswered(ops []proto.Op) map[place]*proto.Op {
	left := make(map[place]*proto.Op, len(ops))
	for i := range ops {
		left[place{ops[i].Slot, ops[i].Seq}] = &ops[i]
	}
	return left
}

// exchange sends operations, and again after a broken link or when the server has no room, until each has its
// answer.
func (t *trunk) exchange(ctx context.Context, ops []proto.Op, take func(*member, *proto.Op, *proto.Reply) error) error {
	for left := unanswered(ops); len(left) > 0; {
		if err := t.connected(ctx); err != nil {
			return err
		}
		broken, err := t.attempt(ctx, ops, left, take)
		if err != nil {
			return err
		}
		if broken {
			t.hangUp()
		} else if len(left) > 0 {
			if err := pause(ctx, fullPause); err != nil {
				return err
			}
		}
	}
	return t.follow(ctx)
}

// follow moves the trunk to the owner of its shard, if the server at the other end has named one.
func (t *trunk) follow(ctx context.Context) error {
	i := t.swarm.fleet.at(t.owner)
	if t.owner = ""; i < 0 {
		return nil
	}
	t.hangUp()
	t.server = i
	return t.connected(ctx)
}

// attempt sends those of the operations that are left, and takes answers until each had one, or the link breaks.
// Those that the server has no room for stay left.
func (t *trunk) attempt(
	ctx context.Context, ops []proto.Op, left map[place]*proto.Op, take func(*member, *proto.Op, *proto.Reply) error,
) (broken bool, err error) {
	var frame proto.ClientFrame
	for i := range ops {
		if left[place{ops[i].Slot, ops[i].Seq}] != nil {
			frame.Ops = append(frame.Ops, ops[i])
		}
	}
	open := len(frame.Ops)
	if t.link.Send(&frame) != nil {
		return true, nil
	}
	for open > 0 {
		var a arrival
		select {
		case a = <-t.frames:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		if a.err != nil {
			return true, nil
		}
		if a.frame.Owner != "" { // it answers nothing
			t.owner = a.frame.Owner
			continue
		}
		t.epoch = a.frame.Epoch
		for i := range a.frame.Replies {
			r := &a.frame.Replies[i]
			at := place{r.Slot, r.Seq}
			op := left[at]
			if op == nil {
				continue // a push
			}
			open--
			if r.Outcome == proto.Refused && busy(r.Code) {
				continue
			}
			delete(left, at)
			if err := take(&t.members[r.Slot-1], op, r); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// connected connects the trunk and attaches its sessions, unless it is connected. After a round over all servers it
// pauses.
func (t *trunk) connected(ctx context.Context) error {
	for tried := 1; t.link == nil; tried++ {
		done, err := t.connect(ctx)
		if err != nil {
			return err
		}
		if done {
			break
		}
		t.hangUp()
		t.server++
		if tried%len(t.swarm.fleet.sites) == 0 {
			if err := pause(ctx, rand.N(longPause)); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect tries one server.
func (t *trunk) connect(ctx context.Context) (done bool, err error) {
	reach, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(reach, "tcp", t.swarm.fleet.port(t.server))
	if err != nil {
		return false, context.Cause(ctx)
	}
	link := proto.ClientFramed(conn, maxAnswer, proto.IdleTimeouts{Ask: beatEvery, Expect: beatEvery})
	stop := context.AfterFunc(reach, func() { link.Close(nil) })
	err = link.Begin(proto.Hello{Namespace: interlock.Namespace(fmt.Sprint("bench-", t.number))})
	stop()
	if refusal, refused := errors.AsType[*interlock.Error](err); refused && !busy(refusal.Code) {
		link.Close(nil)
		return false, refusal
	}
	if err != nil {
		link.Close(nil)
		return false, context.Cause(ctx)
	}
	t.link, t.frames = link, make(chan arrival)
	go read(link, t.frames)
	return t.attach(ctx)
}

// attach resumes the sessions on a new link. That counts as a heartbeat.
func (t *trunk) attach(ctx context.Context) (done bool, err error) {
	var ops []proto.Op
	for i := range t.members {
		if m := &t.members[i]; m.alive() {
			ops = append(ops, proto.Op{Kind: proto.OpAttach, Slot: m.slot, Seq: 1, ID: m.id})
		}
	}
	for bundle := range slices.Chunk(ops, chunk) {
		for left := unanswered(bundle); len(left) > 0; {
			broken, err := t.attempt(ctx, bundle, left, func(m *member, op *proto.Op, r *proto.Reply) error {
				if r.Outcome == proto.Refused && ended(r.Code) {
					m.gone = true
					return nil
				}
				return t.expect(op, r, proto.Done)
			})
			if err != nil || broken {
				return false, err
			}
			if len(left) > 0 {
				if err := pause(ctx, fullPause); err != nil {
					return false, err
				}
			}
		}
	}
	return true, nil
}

// read passes on what arrives until the link ends. A frame is filled again when the next one was taken.
func read(link proto.ClientLink, to chan<- arrival) {
	var frames [2]proto.ServerFrame
	for i := 0; ; i = 1 - i {
		err := link.Recv(&frames[i])
		to <- arrival{&frames[i], err}
		if err != nil {
			close(to)
			return
		}
	}
}

// hangUp closes the link.
func (t *trunk) hangUp() {
	if t.link == nil {
		return
	}
	t.link.Close(nil)
	go func(rest <-chan arrival) { // read ends when its last arrival is taken
		for range rest {
		}
	}(t.frames)
	t.link, t.frames, t.owner = nil, nil, ""
}
