package proto

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"
)

// Codec carries this package's frames over gRPC. Both sides force it; on the wire
// it is what any protocol buffers codec would write.
type Codec struct{}

// Name returns the name in the content type.
func (Codec) Name() string { return "proto" }

// Marshal encodes a *ClientFrame or a *ServerFrame.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	buf := frameBuffers.Get(0)
	switch f := v.(type) {
	case *ClientFrame:
		*buf = f.AppendTo((*buf)[:0])
	case *ServerFrame:
		*buf = f.AppendTo((*buf)[:0])
	default:
		return nil, fmt.Errorf("proto: cannot encode %T", v)
	}
	return mem.BufferSlice{mem.NewBuffer(buf, frameBuffers)}, nil
}

// Unmarshal decodes into a *ClientFrame or a *ServerFrame.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	whole := data.MaterializeToBuffer(frameBuffers)
	defer whole.Free()
	switch f := v.(type) {
	case *ClientFrame:
		return f.Decode(whole.ReadOnlyData())
	case *ServerFrame:
		return f.Decode(whole.ReadOnlyData())
	}
	return fmt.Errorf("proto: cannot decode %T", v)
}

// frameBuffers keeps the memory of encoded frames. Unlike gRPC's own pool it returns one that was
// large before to callers that do not know yet how large a frame gets.
var frameBuffers = &bufferPool{}

type bufferPool struct{ pool sync.Pool }

// keptBuffer bounds what is kept: one huge frame should not occupy memory for ever.
const keptBuffer = 1 << 20

func (p *bufferPool) Get(length int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= length {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, max(length, 4<<10))
	return &b
}

func (p *bufferPool) Put(b *[]byte) {
	if cap(*b) <= keptBuffer {
		p.pool.Put(b)
	}
}
