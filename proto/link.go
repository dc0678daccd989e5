package proto

import "github.com/interlockdev/interlock"

// Link carries frames both ways, in order. Send is called by one goroutine at a
// time and Recv by one, both concurrently with each other and with Close.
//
// An error of Send or Recv ends the link: nothing later gets through. It is an
// *interlock.Error when the other side ended it with a refusal, and io.EOF when it
// ended in order.
type Link[Out, In any] interface {
	// Send hands a frame over. It may take the frame's memory and leave other memory in its
	// place, so the caller resets the frame before it fills it again. Memory that the frame's
	// elements point to is shared from then on: neither side changes it. It blocks while the
	// other side does not read. A nil error does not mean that the frame arrived.
	Send(*Out) error

	// Recv replaces what is in the frame by the next one. It reuses the frame's
	// slice, and nothing that the slice's elements point to.
	Recv(*In) error

	// Close ends the link: blocked calls return, and the other side's Recv returns reason, or
	// io.EOF when it is nil, possibly before it has read everything that was sent. It does not
	// block.
	Close(reason *interlock.Error)
}

// Peeker is a link that may know what comes.
type Peeker interface {
	// Ready reports whether Recv would return a frame that has arrived already. ok is false when
	// the link cannot tell. It is called by the goroutine that calls Recv.
	Ready() (yes, ok bool)
}

// SpinReader is a link that can wait for input without sleeping.
type SpinReader interface {
	// Spin announces that something is likely to come at once: the next Recv looks for it again
	// and again for a moment, as long as exclusive returns true, before it sleeps. It is called
	// by the goroutine that calls Recv.
	Spin(exclusive func() bool)
}

// ClientLink is the client's end of a link, ServerLink the server's.
type (
	ClientLink = Link[ClientFrame, ServerFrame]
	ServerLink = Link[ServerFrame, ClientFrame]
)

// Hello is how a client describes itself when it connects.
type Hello struct {
	Namespace  interlock.Namespace // "": the credential's, else "default"
	Credential string              // the bearer credential, or ""
	Forwarded  bool                // by a server that does not own the shard
}
