package oncejournal

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock/journal/remote"
)

// memory is a store in this process.
type memory struct {
	name string

	mu      sync.Mutex // guards the fields below
	all     map[string]object
	version int
	others  map[int]*memory // other shards

	// fault is called before each write, without the lock, and decides what becomes of it.
	fault func(ctx context.Context, o object) fault
}

type fault int

const (
	none     fault = iota
	lost           // the request does not arrive
	answered       // it is carried out, and the answer is lost
)

var errNoAnswer = errors.New("no answer")

func newMemory() *memory { return &memory{name: "memory", all: map[string]object{}} }

func (m *memory) where() string { return m.name }

func (m *memory) shard(n int) objects {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n == 0 {
		return m
	}
	if m.others == nil {
		m.others = map[int]*memory{}
	}
	if m.others[n] == nil {
		m.others[n] = newMemory()
	}
	return m.others[n]
}

func (m *memory) check(context.Context) error { return nil }

func (m *memory) put(ctx context.Context, o object, was, free string) (version string, done bool, err error) {
	f := none
	if m.fault != nil {
		f = m.fault(ctx, o)
	}
	if f == lost {
		return "", false, errNoAnswer
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.all[free]; !taken && (was == remote.AnyVersion || m.all[o.name].version == was) {
		m.version++
		o.version = strconv.Itoa(m.version)
		o.data = slices.Clone(o.data)
		m.all[o.name] = o
		version, done = o.version, true
	}
	if f == answered {
		return "", false, errNoAnswer
	}
	return version, done, nil
}

func (m *memory) read(_ context.Context, names []string, whole bool) (list []object, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		o := m.all[name]
		if o.name = name; !whole {
			o.data = nil
		}
		list = append(list, o)
	}
	return list, nil
}

func (m *memory) list(_ context.Context, prefix string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.all {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (m *memory) remove(_ context.Context, list []object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list {
		delete(m.all, list[i].name)
	}
	return nil
}

func (m *memory) place(name string) string { return "memory/" + name }
func (m *memory) close()                   {}

// count returns how many objects have names that begin with a prefix.
func (m *memory) count(prefix string) int {
	names, _ := m.list(context.Background(), prefix)
	return len(names)
}

// store makes a store of its own, as each server has one.
func (m *memory) store() *remote.Store { return remote.New(newDriver(m, 0), 0) }
