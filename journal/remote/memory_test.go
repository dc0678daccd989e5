package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
)

// memory is an engine in this process. With creates it can do one thing only, as a bucket: create
// an append under a name that is free.
type memory struct {
	creates bool

	mu      sync.Mutex // guards the fields below
	head    Head
	moved   bool
	log     map[interlock.Index]stored // by the index of its first entry
	values  map[string]Value
	version int

	// fault is called with each write and decides what becomes of it.
	fault func(method string) fault
}

type stored struct {
	by   Owner
	end  Position
	data []byte
}

type fault int

const (
	none     fault = iota
	lost           // the request does not arrive
	answered       // it is carried out, and the answer is lost
)

var errNoAnswer = errors.New("no answer")

func newMemory(creates bool) *memory {
	return &memory{creates: creates, log: map[interlock.Index]stored{}, values: map[string]Value{}}
}

// write carries a change out, as far as the fault permits.
func (m *memory) write(ctx context.Context, method string, change func() bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := none
	if m.fault != nil {
		f = m.fault(method)
	}
	if f == lost {
		return false, errNoAnswer
	}
	done := change()
	if f == answered {
		return false, errNoAnswer
	}
	return done, nil
}

func (m *memory) owned(by Owner) bool {
	h := m.current()
	return h.Owner == by
}

// current needs mu. Where creation alone fences, the last append has the owner and the tail.
func (m *memory) current() Head {
	if !m.creates {
		return m.head
	}
	h := m.head
	for {
		next, ok := m.log[h.Tail.Index+1]
		if !ok {
			return h
		}
		h.Owner, h.Tail = next.by, next.end
	}
}

func (m *memory) Head(ctx context.Context) (h Head, err error) {
	_, err = m.write(ctx, "head", func() bool {
		h = m.current()
		h.Moved = m.moved
		return true
	})
	return h, err
}

func (m *memory) Fence(ctx context.Context, was, to Owner, moved bool) (bool, error) {
	return m.write(ctx, "fence", func() bool {
		if m.creates {
			return true
		}
		ok := m.head.Owner == was
		if ok {
			m.head.Owner = to
			m.moved = m.moved || moved
		}
		return ok
	})
}

func (m *memory) Adopt(ctx context.Context, by Owner) (bool, error) {
	return m.write(ctx, "adopt", func() bool {
		if !m.owned(by) {
			return false
		}
		m.moved = false
		return true
	})
}

func (m *memory) Append(ctx context.Context, by Owner, after, next Position, frame []byte) (bool, error) {
	return m.write(ctx, "append", func() bool {
		if _, taken := m.log[after.Index+1]; taken || !m.creates && (m.head.Owner != by || m.head.Tail != after) {
			return false
		}
		m.log[after.Index+1] = stored{by, next, slices.Clone(frame)}
		if !m.creates {
			m.head.Tail = next
		} else if len(m.log) == 1 {
			m.head.Tail = after
		}
		return true
	})
}

func (m *memory) Confirm(ctx context.Context, by Owner, tail Position) (ok bool, err error) {
	return m.write(ctx, "confirm", func() bool { return m.owned(by) && m.current().Tail.Index >= tail.Index })
}

func (m *memory) Frames(ctx context.Context, from interlock.Index, limit int) (list []Frame, err error) {
	_, err = m.write(ctx, "frames", func() bool {
		for _, first := range slices.Sorted(maps.Keys(m.log)) {
			if s := m.log[first]; s.end.Index >= from && len(list) < limit {
				list = append(list, Frame{Name: fmt.Sprint("log/", first), First: first, Data: s.data})
			}
		}
		return true
	})
	return list, err
}

func (m *memory) Drop(
	ctx context.Context, by Owner, before interlock.Index,
) (dropped interlock.Index, done bool, err error) {
	done, err = m.write(ctx, "drop", func() bool {
		if !m.owned(by) {
			dropped = 1
			return false
		}
		for _, first := range slices.Sorted(maps.Keys(m.log)) {
			s := m.log[first]
			if s.end.Index >= before {
				break
			}
			if dropped == 0 { // one at a time
				dropped = s.end.Index
				if m.creates {
					m.head = Head{Owner: s.by, Tail: s.end}
				}
				delete(m.log, first)
			}
		}
		return true
	})
	return dropped, done, err
}

func (m *memory) Get(ctx context.Context, name string) (v Value, err error) {
	_, err = m.write(ctx, "get", func() bool { v = m.values[name]; return true })
	return v, err
}

func (m *memory) Put(
	ctx context.Context, by Owner, name string, data []byte, was string,
) (version string, done bool, err error) {
	done, err = m.write(ctx, "put", func() bool {
		if !m.owned(by) || was != AnyVersion && m.values[name].Version != was {
			return false
		}
		version = m.set(name, data)
		return true
	})
	return version, done, err
}

func (m *memory) Swap(ctx context.Context, name string, data []byte, was string) (version string, done bool, err error) {
	done, err = m.write(ctx, "swap", func() bool {
		if m.values[name].Version != was {
			return false
		}
		version = m.set(name, data)
		return true
	})
	return version, done, err
}

func (m *memory) set(name string, data []byte) string {
	m.version++
	v := strconv.Itoa(m.version)
	m.values[name] = Value{slices.Clone(data), v}
	return v
}

func (m *memory) Remove(ctx context.Context, by Owner, from, to string) (bool, error) {
	return m.write(ctx, "remove", func() bool {
		if !m.owned(by) {
			return false
		}
		maps.DeleteFunc(m.values, func(name string, _ Value) bool { return from <= name && name < to })
		return true
	})
}

func (m *memory) Found(ctx context.Context, h Head, name string, data []byte) (bool, error) {
	return m.write(ctx, "found", func() bool {
		if !m.owned(Owner{}) {
			return false
		}
		m.head = h
		m.set(name, data)
		m.moved = h.Moved
		return true
	})
}

func (m *memory) Shard(int) Driver { return newMemory(m.creates) }

func (m *memory) Low(context.Context) (bool, error) { return false, nil }
func (m *memory) Place(name string) string          { return "memory/" + name }
func (m *memory) Close() error                      { return nil }

// keys lists the values below a prefix.
func (m *memory) keys(prefix string) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.values {
		if strings.HasPrefix(name, prefix) {
			list = append(list, name)
		}
	}
	return list
}
