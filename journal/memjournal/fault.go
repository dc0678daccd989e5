package memjournal

import "context"

// Fault is the fault of one append.
type Fault int

const (
	// None: the append goes through. Queue it to let some pass before a fault.
	None Fault = iota
	// NoSpace: ErrNoSpace; nothing is stored and the journal stays usable.
	NoSpace
	// NoFiles: ErrNoSpace and ErrNoFiles; otherwise as NoSpace.
	NoFiles
	// Lost: ErrFailed, and nothing is stored. The journal is not usable any more.
	Lost
	// Stored: ErrFailed, but all of it is stored: the outcome that no caller could know. The
	// journal is not usable any more, the next Open finds the entries.
	Stored
)

// Inject queues faults; each append that would otherwise succeed takes one.
// Refused appends (misuse, fenced) take none.
func (s *Store) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// next takes the fault for this append. The caller holds s.mu.
func (s *Store) next() Fault {
	if len(s.faults) == 0 {
		return None
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

// SetLow sets the result of Low.
func (s *Store) SetLow(low bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.low = low
}

// Hold stops appends before they do anything, until Release.
type Hold struct {
	// Reached is closed when the first append stands still.
	Reached  <-chan struct{}
	reached  chan struct{}
	released chan struct{}
	store    *Store
}

// Hold makes appends stand still from now on. They check their epoch only after Release, so
// what stands still can be fenced meanwhile. When its context ends, a held append returns
// ErrFailed and stores nothing. Only one Hold at a time.
func (s *Store) Hold() *Hold {
	reached := make(chan struct{})
	h := &Hold{Reached: reached, reached: reached, released: make(chan struct{}), store: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != nil {
		panic("memjournal: Hold while another one is in force")
	}
	s.hold = h
	return h
}

// Release lets what stands still go on. It must be called once.
func (h *Hold) Release() {
	h.store.mu.Lock()
	h.store.hold = nil
	h.store.mu.Unlock()
	close(h.released)
}

// pass waits for as long as appends are held.
func (s *Store) pass(ctx context.Context) error {
	s.mu.Lock()
	h := s.hold
	if h != nil {
		select {
		case <-h.reached:
		default:
			close(h.reached)
		}
	}
	s.mu.Unlock()
	if h == nil {
		return ctx.Err()
	}
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
