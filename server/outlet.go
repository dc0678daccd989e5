package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/shard"
)

// outlet is where a stream's answers leave: in frames, as many in each as there are. The
// writer and the reader use it, one at a time.
type outlet struct {
	mu      sync.Mutex
	frame   proto.ServerFrame
	batch   []outgoingEffect
	timeout *time.Timer // of a Send; made with the first
	goAway  bool        // the next frame announces it
}

// write sends the contents of st.out, whenever there is something that the reader does not send
// itself, until the stream ends.
func (st *stream) write() {
	draining := st.d.s.Draining()
	for {
		goAway := false
		select {
		case <-st.wake:
		case <-draining:
			draining, goAway = nil, true
		case <-st.d.s.shard.Failed():
			st.cut(shardFailed(st.d.s.shard.Err()))
		case <-st.life.Done():
		}
		if goAway {
			st.outlet.mu.Lock()
			st.outlet.goAway = true
			st.outlet.mu.Unlock()
		}
		if !st.flush() {
			return
		}
	}
}

// flush sends the contents of st.out. It reports whether the stream continues.
func (st *stream) flush() bool {
	o := &st.outlet
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch = st.take(o.batch); o.batch == nil {
		return false
	}
	if o.goAway {
		o.goAway = false
		o.frame.GoAway = &proto.GoAway{
			RetryAfter: comeBackAfter,
			Message:    "the server is shutting down: connect again in a moment; leases and queue positions are kept",
		}
		if len(o.batch) == 0 && !st.send() {
			return false
		}
	}
	for rest := o.batch; len(rest) > 0; {
		size, bulk := 0, 0
		for len(rest) > 0 && len(o.frame.Replies) < maxReplies && size < proto.FullFrameBytes {
			d := &rest[0]
			o.frame.Shard, o.frame.Epoch = uint32(d.at.Shard), d.at.Epoch
			r := o.frame.Next()
			d.reply(r, st)
			size, bulk, rest = size+r.Bulk(), bulk+d.bulk, rest[1:]
		}
		if !st.send() {
			return false
		}
		st.carry(-bulk)
	}
	return true
}

// send sends the frame and empties it. The stream is cut if that fails, or takes too long.
func (st *stream) send() bool {
	o := &st.outlet
	if o.timeout == nil {
		o.timeout = time.AfterFunc(st.d.cfg.WriteTimeout, func() { st.cut(unread(st.d.cfg.WriteTimeout)) })
	} else {
		o.timeout.Reset(st.d.cfg.WriteTimeout)
	}
	err := st.link.Send(&o.frame)
	if !o.timeout.Stop() || err != nil {
		st.cut(nil)
		return false
	}
	o.frame.Reset()
	return true
}

// comeBackAfter is the mean time after which clients come back to a server that
// shuts down.
const comeBackAfter = 500 * time.Millisecond

// take exchanges the empty slice for the pending effects; nil means that the stream has ended.
// Slices that a burst has made large are not kept.
func (st *stream) take(empty []outgoingEffect) []outgoingEffect {
	clear(empty)
	if cap(empty) > 2*maxReplies {
		empty = nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return nil
	}
	batch := st.out
	st.out = empty[:0]
	if batch == nil {
		batch = []outgoingEffect{}
	}
	st.room.Signal()
	return batch
}

func slowReader(n int) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeOverloaded,
		Message: fmt.Sprintf(
			"%d answers are unread: read faster, or use more streams; nothing is lost, connect again and attach", n,
		),
	}
}

func unread(d time.Duration) *interlock.Error {
	return &interlock.Error{
		Code:    interlock.CodeOverloaded,
		Message: fmt.Sprintf("nothing was read from this stream for %v: nothing is lost, connect again and attach", d),
	}
}

func shardFailed(err error) *interlock.Error {
	if refusal := shard.Refusal(err); refusal != nil && refusal.Code == interlock.CodeNotOwner {
		return refusal
	}
	code, message := interlock.CodeOutcomeUnknown,
		"the server's storage failed: connect again and repeat the unanswered requests"
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		code = refusal.Code
	}
	return &interlock.Error{Code: code, Message: message}
}
