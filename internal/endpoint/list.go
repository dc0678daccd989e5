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
//
// A server that was silent is passed over for some seconds, also if another one names it: that one does not know yet.
type List struct {
	Dialer
	addrs []string

	mu     sync.Mutex
	now    int               // index in addrs
	silent map[int]time.Time // when a server last gave no answer, by its index
}

// avoided is how long a silent server is passed over: another one has its shards after that.
const avoided = 5 * time.Second

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

// Failed reports that the server with this index is not the active one: the next attempt goes to the next one. It has
// no effect after another attempt has moved on from it.
func (l *List) Failed(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveOn(i)
}

// Silent is Failed for a server that did not answer.
func (l *List) Silent(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent == nil {
		l.silent = map[int]time.Time{}
	}
	l.silent[i] = time.Now()
	l.moveOn(i)
}

// moveOn needs mu. If all have been silent, the next one is tried all the same.
func (l *List) moveOn(i int) {
	if l.now != i {
		return
	}
	l.now = (i + 1) % len(l.addrs)
	for n := range len(l.addrs) {
		if at := (i + 1 + n) % len(l.addrs); !l.avoids(at) {
			l.now = at
			break
		}
	}
	l.rotate(l.addrs[i])
}

func (l *List) avoids(i int) bool {
	at, was := l.silent[i]
	return was && time.Since(at) < avoided
}

// Follow makes the server at addr, host:port, the current one. A standby named it as the active
// server. It reports whether addr is on the list, as it is written there or as an address of one of
// its names; any other address is not followed, nor one that has just been silent.
func (l *List) Follow(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.find(addr)
	if i < 0 || l.avoids(i) {
		return false
	}
	l.now = i
	return true
}

// FollowOwner is Follow for a server that has answered by way of another one, and so is silent no more.
func (l *List) FollowOwner(addr string) bool {
	l.mu.Lock()
	delete(l.silent, l.find(addr))
	l.mu.Unlock()
	return l.Follow(addr)
}

// find needs mu. It returns the index of an address, -1 for one that is not on the list.
func (l *List) find(addr string) int {
	if i := slices.Index(l.addrs, addr); i >= 0 {
		return i
	}
	return slices.IndexFunc(l.addrs, func(name string) bool { return l.prefer(name, addr) })
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
