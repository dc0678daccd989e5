package endpoint

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// ErrClosed is the error of a connection that was made and closed again before anything was answered.
var ErrClosed = errors.New("the server, or a load balancer before it, closed the connection before it answered")

// Dialer connects to a name with several addresses at the one that was reached last, and after a
// failure at the next: a standby accepts connections like the active server, so the first address
// that accepts one need not be the right one. The zero value is ready.
type Dialer struct {
	// Lookup finds the addresses of a host. nil: the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Connect connects to an address. nil: over the network of the machine.
	Connect func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	names map[string][]string // host:port of a name: the addresses, host:port, in the order of their trial
}

// headStart is how long an address is tried alone: then the next one is, too, as in RFC 8305.
const headStart = 250 * time.Millisecond

// DialContext connects to addr, host:port.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	connect := d.Connect
	if connect == nil {
		connect = new(net.Dialer).DialContext
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || net.ParseIP(host) != nil {
		return connect(ctx, network, addr)
	}
	lookup := d.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupHost
	}
	found, err := lookup(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	for i := range found {
		found[i] = net.JoinHostPort(found[i], port)
	}
	addrs := d.order(addr, found)
	if len(addrs) == 0 {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("the name has no address")}
	}
	return Race(ctx, len(addrs), headStart, func(ctx context.Context, i int) (net.Conn, error) {
		return connect(ctx, network, addrs[i])
	}, func(c net.Conn) { c.Close() })
}

// order returns what was found for a name, what was tried first the last time before the rest.
func (d *Dialer) order(name string, found []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.names[name]
	rank := func(addr string) int {
		if i := slices.Index(old, addr); i >= 0 {
			return i
		}
		return len(old)
	}
	slices.SortStableFunc(found, func(a, b string) int { return rank(a) - rank(b) })
	found = slices.Compact(found)
	if d.names == nil {
		d.names = map[string][]string{}
	}
	d.names[name] = found
	return slices.Clone(found)
}

// rotate makes the next address of a name the first.
func (d *Dialer) rotate(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if list := d.names[name]; len(list) > 1 {
		d.names[name] = append(slices.Clone(list[1:]), list[0])
	}
}

// prefer makes addr the first address of a name, and reports whether it is one.
func (d *Dialer) prefer(name, addr string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.names[name]
	i := slices.Index(list, addr)
	if i >= 0 {
		d.names[name] = slices.Concat(list[i:], list[:i])
	}
	return i >= 0
}

// hosts returns how many addresses a name is known to have, at least 1.
func (d *Dialer) hosts(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(1, len(d.names[name]))
}

// Race returns what the first of n attempts brings that succeeds. Each begins when the one before has failed, or after
// a head start. The others are cancelled, and what they still bring is dropped. The error is that of the first attempt.
func Race[T any](
	ctx context.Context, n int, headStart time.Duration, attempt func(ctx context.Context, i int) (T, error), drop func(T),
) (won T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		got T
		err error
		at  int
	}
	results := make(chan result, n)
	for begun, ended := 0, 0; ended < n; {
		var next <-chan time.Time
		if begun < n {
			at := begun
			go func() {
				got, err := attempt(ctx, at)
				results <- result{got, err, at}
			}()
			begun++
			timer := time.NewTimer(headStart)
			defer timer.Stop()
			next = timer.C
		}
		select {
		case r := <-results:
			ended++
			if r.err != nil {
				if r.at == 0 {
					err = r.err
				}
				break
			}
			go func(left int) {
				for range left {
					if late := <-results; late.err == nil {
						drop(late.got)
					}
				}
			}(begun - ended)
			return r.got, nil
		case <-next:
		}
	}
	return won, err
}
