package proto

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// A stream is one line, so what is large in it delays what comes behind it. So a client ends a
// frame behind a bulky operation, and sends what is not bulky and became ready meanwhile before the
// next one. A server answers in the order of its decisions. It ends a frame that is full, and reads
// nothing more from a client that has too much on its way.
const (
	// MaxOpBytes bounds an operation, encoded: a commit of interlock.MaxCommitBytes
	// with as many keys as it may have, and some more, so that what is too much is
	// refused by the server with a code and not by ending the stream.
	MaxOpBytes = interlock.MaxCommitBytes + 1<<20

	// BulkBytes is above what an operation is bulky.
	BulkBytes = 64 << 10

	// MaxFrameBytes bounds a client's frame, encoded: a bulky operation behind 1 MiB of
	// others. A server answers a larger one by ending the stream.
	MaxFrameBytes = MaxOpBytes + 1<<20

	// FullFrameBytes is at how many bytes a server ends a frame.
	FullFrameBytes = 1 << 20
)

// MaxFrameOps bounds the operations of one frame, because an empty operation is
// much smaller on the wire than in memory.
const MaxFrameOps = 8192

// ClientFrame is a client's frame.
type ClientFrame struct {
	Ops []Op
}

// Reset empties the frame and keeps its memory.
func (f *ClientFrame) Reset() {
	clear(f.Ops)
	f.Ops = f.Ops[:0]
}

// next appends an empty operation. The room behind the last one is empty, since Reset leaves
// nothing.
func (f *ClientFrame) next() *Op {
	n := len(f.Ops)
	f.Ops = slices.Grow(f.Ops, 1)[:n+1]
	return &f.Ops[n]
}

// AppendTo appends the frame's encoding to b.
func (f *ClientFrame) AppendTo(b []byte) []byte {
	for i := range f.Ops {
		b = appendOp(b, 1, &f.Ops[i])
	}
	return b
}

// Decode replaces the frame's content by that of b. Nothing of b is kept. Each operation's strings
// share one piece of memory, and no two operations do, so that what outlives its frame does not
// keep all of it; those of commits, effects and tasks, which may be large, share none. An operation
// without a body, or with one that this version does not know, has Kind 0.
func (f *ClientFrame) Decode(b []byte) error {
	f.Reset()
	for len(b) > 0 {
		x, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		if x.tag != 1<<3|wireBytes {
			continue
		}
		if len(f.Ops) == MaxFrameOps {
			return badFrame("it has more than %d operations", MaxFrameOps)
		}
		if err := decodeOp(f.next(), x.s); err != nil {
			return err
		}
	}
	return nil
}

// ServerFrame is a server's frame.
type ServerFrame struct {
	Shard   uint32
	Epoch   interlock.Epoch
	Replies []Reply
	GoAway  *GoAway
	Owner   string // the session address of the shard's owner, from a server that relays the stream to it
}

// GoAway announces that the server stops soon.
type GoAway struct {
	RetryAfter time.Duration
	Message    string
}

// Reset empties the frame and keeps its memory.
func (f *ServerFrame) Reset() {
	clear(f.Replies)
	*f = ServerFrame{Replies: f.Replies[:0]}
}

// Next appends an empty reply, to be filled in. The room behind the last one is empty, since
// Reset leaves nothing.
func (f *ServerFrame) Next() *Reply {
	n := len(f.Replies)
	f.Replies = slices.Grow(f.Replies, 1)[:n+1]
	return &f.Replies[n]
}

// AppendTo appends the frame's encoding to b.
func (f *ServerFrame) AppendTo(b []byte) []byte {
	b = appendUint(b, 1, uint64(f.Shard))
	b = appendUint(b, 2, uint64(f.Epoch))
	for i := range f.Replies {
		b = appendReply(b, 3, &f.Replies[i])
	}
	if f.GoAway != nil {
		b = appendGoAway(b, 4, f.GoAway)
	}
	return appendString(b, 5, f.Owner)
}

// Decode replaces the frame's content by that of b. Nothing of b is kept.
func (f *ServerFrame) Decode(b []byte) error {
	f.Reset()
	for len(b) > 0 {
		x, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		switch x.tag {
		case 1<<3 | wireVarint:
			f.Shard = uint32(x.v)
		case 2<<3 | wireVarint:
			f.Epoch = interlock.Epoch(x.v)
		case 3<<3 | wireBytes:
			err = decodeReply(f.Next(), string(x.s))
		case 4<<3 | wireBytes:
			f.GoAway = &GoAway{}
			err = decodeGoAway(f.GoAway, string(x.s))
		case 5<<3 | wireBytes:
			err = text(&f.Owner, string(x.s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
