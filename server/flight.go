package server

import (
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
)

// flight bounds the bytes of requests and answers under way in the whole process: of a
// body from the piece that has arrived until the call is over, of an answer and of an
// event reader's text until the client has taken it, and of the documents that streams
// carry.
//
// A tenant may have as many as are free: alone it gets a half of the limit, two tenants a
// third each, so that there is room for another one however many bytes they send.
// Above that its calls are refused with overloaded, its slow readers of events are cut off,
// and its streams are read on when they have taken what waits for them. Heartbeats,
// renewals and releases are counted and never refused.
type flight struct {
	limit   int64 // 0: any number
	refused atomic.Int64

	mu   sync.Mutex
	used int64
	of   map[interlock.Namespace]int64
}

const (
	// smallBytes are not counted: a connection has as many in its buffers anyway.
	smallBytes = 4 << 10
	// leastStreamBytes is the number of bytes that a stream may have under way however full it
	// is.
	leastStreamBytes = 256 << 10
)

func newFlight(limit int64) *flight {
	return &flight{limit: max(limit, 0), of: map[interlock.Namespace]int64{}}
}

// take counts n more bytes of a tenant, unless it has as many as are free; it reports
// whether it counted them.
func (f *flight) take(tenant interlock.Namespace, n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limit > 0 && f.of[tenant]+int64(n) > f.limit-f.used {
		f.refused.Add(1)
		return false
	}
	f.add(tenant, n)
	return true
}

// count counts n more bytes of a tenant, or -n less, whatever there is room for.
func (f *flight) count(tenant interlock.Namespace, n int) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(tenant, n)
}

// add needs mu.
func (f *flight) add(tenant interlock.Namespace, n int) {
	f.used += int64(n)
	if f.of[tenant] += int64(n); f.of[tenant] == 0 {
		delete(f.of, tenant)
	}
}

// isFull reports whether a tenant has as many bytes under way as are free, and counts a
// refusal if it has.
func (f *flight) isFull(tenant interlock.Namespace) bool {
	if f.limit == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[tenant] < f.limit-f.used {
		return false
	}
	f.refused.Add(1)
	return true
}

// streamRoom returns how many bytes of documents one stream of a tenant may have under way
// before it is not read on.
func (f *flight) streamRoom(tenant interlock.Namespace) int {
	if f.limit == 0 {
		return maxBulk
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(min(max(f.limit-f.used-f.of[tenant], leastStreamBytes), maxBulk))
}

// bytes returns how many are under way.
func (f *flight) bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}

// carry counts bytes of the call's body, which are its own until it is over. It reports
// whether there was room; a call that must get through always finds some.
func (c *call) carry(n int) bool {
	if c.isVital() {
		c.s.flight.count(c.namespace, n)
	} else if !c.s.flight.take(c.namespace, n) {
		return false
	}
	c.carried += n
	return true
}

// land takes note that the call is over.
func (c *call) land() {
	c.s.flight.count(c.namespace, -c.carried)
	c.carried = 0
}

// isVital reports whether the call is a heartbeat, a renewal or a release.
func (c *call) isVital() bool { return vitalCalls[c.route] == c.r.Method }

// crowdedOut refuses the call if its tenant has as many bytes under way as are free.
func (c *call) crowdedOut() bool {
	if c.isVital() || !c.s.flight.isFull(c.namespace) {
		return false
	}
	c.refuseInFlight()
	return true
}

// tooMuchInFlight begins the refusal of a tenant that has as many bytes under way as are free.
const tooMuchInFlight = "the requests and answers of this namespace in flight have reached their memory limit: "

// refuseInFlight refuses the call for that.
func (c *call) refuseInFlight() {
	c.w.Header().Set("Connection", "close") // what is left of the body is not read
	c.refuse(interlock.CodeOverloaded, tooMuchInFlight+"wait for answers before you send more, and read them")
}
