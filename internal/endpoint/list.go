package endpoint

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// List is the servers of a cluster, in the order in which they are tried. It stays with the one
// that answered last. Its methods may be called concurrently.
//
//	answers:                     Current stays
//	refused, silent, stands by:  Current is the next, or the one that the standby named
type List struct {
	Dialer
	addrs []string

	mu  sync.Mutex
	now int // index in addrs
}

// New returns the list of these addresses, each host:port.
func New(addrs []string) *List { return &List{addrs: slices.Clone(addrs)} }

// Len returns the number of addresses.
func (l *List) Len() int { return len(l.addrs) }

// Addr returns an address by its index.
func (l *List) Addr(i int) string { return l.addrs[i] }

// Current returns the index of the server to use.
func (l *List) Current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Failed reports that the server with this index did not answer, or is not the active one: the next
// attempt goes to the next one. It has no effect after another attempt has moved on from it.
func (l *List) Failed(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == i {
		l.now = (i + 1) % len(l.addrs)
		l.rotate(l.addrs[i])
	}
}

// Follow makes the server at addr, host:port, the current one. A standby named it as the active
// server. It reports whether addr is on the list, as it is written there or as an address of one of
// its names; any other address is not followed.
func (l *List) Follow(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.addrs, addr)
	if i < 0 {
		i = slices.IndexFunc(l.addrs, func(name string) bool { return l.prefer(name, addr) })
	}
	if i >= 0 {
		l.now = i
	}
	return i >= 0
}

// Places returns how many servers can be tried in a round: a name with several addresses counts
// as that many, once it was looked up.
func (l *List) Places() (n int) {
	for _, addr := range l.addrs {
		n += l.hosts(addr)
	}
	return n
}

// MostPause bounds the pause between two rounds: a standby takes over within seconds, and leases
// run out meanwhile.
const MostPause = time.Second

// Pause waits between two rounds (the first round is 0) for a random time of up to 100 ms that
// doubles from round to round. When ctx ends before, it returns the cause.
func Pause(ctx context.Context, round int) error {
	most := min(100*time.Millisecond<<min(round, 8), MostPause)
	timer := time.NewTimer(rand.N(most) + 1)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Attentive bounds the ttl that signs of life are timed by when there is another server to go to:
// they are then sent every two seconds or somewhat more often, so that a server that stands
// still with its connections open is left within six seconds, and not only when the leases are
// nearly over.
const Attentive = 6 * time.Second

// leastShare is what one attempt gets at least: a server that is busy needs as long for an answer.
const leastShare = 500 * time.Millisecond

// Share returns how much of left one attempt may use while another server can be tried: a quarter,
// so that a server that is silent leaves time for the others.
func Share(left time.Duration) time.Duration { return max(left/4, min(left, leastShare)) }
