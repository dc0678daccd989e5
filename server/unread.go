package server

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
)

// receipt is whether the client of a connection reads the answers. A client that closes its connection with an answer
// unread resets it; one that has read all ends it.
type receipt struct {
	lost  atomic.Pointer[func()] // of the last answer, nil for none
	reset atomic.Bool
}

// Unread has lost called if the client of a request resets its connection before it sends another request: it has not
// read the answer. ctx is that of a request over HTTP/1 to HTTPServer. A proxy reads answers for its clients.
func Unread(ctx context.Context, lost func()) {
	v, _ := ctx.Value(visitorKey{}).(*visitor)
	if v == nil {
		return
	}
	v.lost.Store(&lost)
	if v.reset.Load() {
		v.wasReset()
	}
}

// Read implements net.Conn.
func (v *visitor) Read(b []byte) (int, error) {
	n, err := v.TCPConn.Read(b)
	switch {
	case n > 0 && v.lost.Load() != nil: // the client goes on
		v.lost.Store(nil)
	case errors.Is(err, syscall.ECONNRESET):
		v.wasReset()
	}
	return n, err
}

// wasReset notes that the client has reset the connection.
func (r *receipt) wasReset() {
	r.reset.Store(true)
	if lost := r.lost.Swap(nil); lost != nil {
		go (*lost)()
	}
}
