package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// No wait for another server is without an end. What is under way to one is kept as a trip, and ends when
//
//   - the table shows another owner, or none,
//   - the owner has not answered this server for peerPatience, or
//   - the call has no answer in the time that its caller wanted to wait, and peerPatience after that.
//
// Then a read is repeated where the shard is now, and the outcome of a change is unknown.

// peerPatience is how long a server that answers nothing is waited for. An owner waits as long for its engine.
const peerPatience = 8 * time.Second

// The causes with which a trip ends.
var (
	errOwnerChanged = errors.New("another server owns the shard now")
	errOwnerSilent  = errors.New("the owner of the shard does not answer")
)

// trips are what is under way to other servers.
type trips struct {
	mu   sync.Mutex
	open map[*trip]struct{}
}

type trip struct {
	ended func(list []Location) error // why it ends; nil if it goes on
	end   func(cause error)
}

// begin notes a trip, until done is called. end is called at most once, on a goroutine of its own.
func (f *trips) begin(ended func([]Location) error, end func(error)) (done func()) {
	one := &trip{ended, end}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[*trip]struct{}{}
	}
	f.open[one] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, one)
	}
}

// follow ends the trips that lead nowhere.
func (f *trips) follow(list []Location) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.open {
		if cause := one.ended(list); cause != nil {
			delete(f.open, one)
			go one.end(cause)
		}
	}
}

// toOwnerOf returns why a trip to the owner of a shard ends. An owner that answers nothing has patience.
func toOwnerOf(at Location, patience time.Duration) func([]Location) error {
	return func(list []Location) error {
		switch {
		case at.Shard >= len(list), list[at.Shard].Owner != at.Owner, list[at.Shard].Active != at.Active:
			return errOwnerChanged
		case list[at.Shard].silentFor(patience):
			return errOwnerSilent
		}
		return nil
	}
}

// toRedisDoor returns why a connection to the door of an owner for clients of Redis ends.
func toRedisDoor(addr string) func([]Location) error {
	return func(list []Location) error {
		cause := errOwnerChanged
		for _, at := range list {
			if at.Active.RESP == addr && !at.silentFor(peerPatience) {
				return nil
			} else if at.Active.RESP == addr {
				cause = errOwnerSilent
			}
		}
		return cause
	}
}

// sentBody tells when the body of a call was sent, and how long the caller wants to wait for the answer.
type sentBody struct {
	io.ReadCloser
	sent func(wait time.Duration)

	tail []byte // the last bytes read, less than a field
	wait time.Duration
	once sync.Once
}

// waitField finds the field of a waiting call. It may stand in a string, and then the call has longer.
var waitField = regexp.MustCompile(`"(?:max_)?wait_ms"\s*:\s*"?(\d{1,12})`)

const maxWaitField = 64 // bytes

func (b *sentBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	b.tail = append(b.tail, p[:n]...)
	for _, m := range waitField.FindAllSubmatch(b.tail, -1) {
		ms, _ := strconv.ParseInt(string(m[1]), 10, 64)
		b.wait = max(b.wait, time.Duration(ms)*time.Millisecond)
	}
	if len(b.tail) > maxWaitField {
		b.tail = bytes.Clone(b.tail[len(b.tail)-maxWaitField:])
	}
	if err != nil {
		b.once.Do(func() { b.sent(b.wait) })
	}
	return n, err
}

// limit ends ctx when the answer does not begin in time. begun is called when it does.
func (c *call) limit(cancel context.CancelCauseFunc) (begun func()) {
	var mu sync.Mutex
	var timer *time.Timer
	over := false
	start := func(wait time.Duration) {
		if ms, err := strconv.ParseInt(c.r.URL.Query().Get("wait_ms"), 10, 64); err == nil && ms < 1e12 {
			wait = max(wait, time.Duration(ms)*time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		if !over {
			timer = time.AfterFunc(wait+peerPatience, func() { cancel(errOwnerSilent) })
		}
	}
	if c.r.Body == nil || c.r.ContentLength == 0 {
		start(0)
	} else {
		c.r.Body = &sentBody{ReadCloser: c.r.Body, sent: start}
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		if timer != nil {
			timer.Stop()
		}
	}
}
