package proto

import (
	"io"
	"sync"

	"github.com/interlockdev/interlock"
)

// Pipe makes a link within the process. It moves frames without encoding them,
// so a frame's strings and slices must not change after Send. Each direction
// holds one frame.
func Pipe() (ClientLink, ServerLink) {
	up, down := newHalf[ClientFrame](), newHalf[ServerFrame]()
	return &pipeEnd[ClientFrame, ServerFrame]{out: up, in: down}, &pipeEnd[ServerFrame, ClientFrame]{out: down, in: up}
}

type pipeEnd[Out, In any] struct {
	out *pipeHalf[Out]
	in  *pipeHalf[In]
}

func (p *pipeEnd[Out, In]) Send(f *Out) error { return p.out.send(f) }
func (p *pipeEnd[Out, In]) Recv(f *In) error  { return p.in.recv(f) }

// Close ends both directions. A frame that waits to be read may still be read.
func (p *pipeEnd[Out, In]) Close(reason *interlock.Error) {
	p.out.close(reason)
	p.in.close(reason)
}

// pipeHalf is one direction: a box for one frame.
type pipeHalf[T any] struct {
	mu     sync.Mutex
	cond   sync.Cond
	box    T
	full   bool
	closed bool
	reason error
}

func newHalf[T any]() *pipeHalf[T] {
	h := &pipeHalf[T]{}
	h.cond.L = &h.mu
	return h
}

func (h *pipeHalf[T]) send(f *T) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.full && !h.closed {
		h.cond.Wait()
	}
	if h.closed {
		return h.reason
	}
	h.box, *f = *f, h.box
	h.full = true
	h.cond.Broadcast()
	return nil
}

func (h *pipeHalf[T]) recv(f *T) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.full && !h.closed {
		h.cond.Wait()
	}
	if !h.full {
		return h.reason
	}
	h.box, *f = *f, h.box
	h.full = false
	h.cond.Broadcast()
	return nil
}

func (h *pipeHalf[T]) close(reason *interlock.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed, h.reason = true, io.EOF
	if reason != nil {
		h.reason = reason
	}
	h.cond.Broadcast()
}
