package busy

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"
	"time"
)

// most is the limit of one wait. It is longer than any event takes on a loaded machine.
const most = 5 * time.Minute

// Patience returns how long a test waits for an event before it fails and names the event: minutes. The variable sets
// less for a test program that is expected to fail, such as a finder of mistakes. It is at most half of -test.timeout,
// so that the test fails by itself before its program is ended.
func Patience() time.Duration {
	most := most
	if set, err := time.ParseDuration(os.Getenv("INTERLOCK_TEST_PATIENCE")); err == nil {
		most = set
	}
	if f := flag.Lookup("test.timeout"); f != nil {
		if all, ok := f.Value.(flag.Getter).Get().(time.Duration); ok && all > 0 {
			return min(most, all/2)
		}
	}
	return most
}

var errInVain = errors.New("the test waited in vain")

// Context returns a context for a call that must be answered. It ends after [Patience] or with the test.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), Patience(), errInVain)
	t.Cleanup(cancel)
	return ctx
}

// Wait waits until happened returns true. It is for events of other processes, which no channel reports.
func Wait(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience()); !happened(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Ports returns addresses of loopback that nothing listens on, and keeps them for the test: a server that is started
// again finds its own still free. They are below the ports that outgoing connections take. A UDP socket at the same
// port keeps it from the other tests that call Ports, in this and all other processes, until the test ends.
func Ports(t testing.TB, n int) (addresses []string) {
	t.Helper()
	const lowest, above = 12_000, 32_000
	var refused error
	for range 1000 {
		if len(addresses) == n {
			return addresses
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(above-lowest)))
		claim, err := net.ListenPacket("udp", address)
		if err != nil {
			refused = err
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			claim.Close()
			refused = err
			continue
		}
		l.Close()
		t.Cleanup(func() { claim.Close() })
		addresses = append(addresses, address)
	}
	t.Fatalf("there are no free ports: %v", refused)
	return nil
}
