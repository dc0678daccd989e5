package client_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// standby is a server that stands by at an address.
type standby struct {
	addr string
	door *server.Streams
	stop func()
	// refused gets a value for each client that was refused, as long as there is room.
	refused chan struct{}
}

// standBy starts one that listens.
func standBy(t *testing.T) *standby {
	t.Helper()
	s := standByInside(t)
	s.addr = busy.Ports(t, 1)[0]
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	s.stop = listenWith(s.door.Server(), l)
	t.Cleanup(s.stop)
	return s
}

// standByInside starts one that is dialled within this process.
func standByInside(t *testing.T) *standby {
	t.Helper()
	s := &standby{refused: make(chan struct{}, 100)}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	srv, err := server.NewStandby(server.Config{Logger: quiet}, func() server.Active {
		select {
		case s.refused <- struct{}{}:
		default:
		}
		return server.Active{HTTP: "http://elsewhere.test:7420", GRPC: "elsewhere.test:7421"}
	})
	if err != nil {
		t.Fatal(err)
	}
	s.door = server.NewStreams(srv, server.StreamConfig{})
	return s
}

// silentAt accepts connections at an address and answers nothing, until the test ends.
func silentAt(t *testing.T, addr string) (accepted chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			accepted <- struct{}{}
		}
	}()
	return accepted
}

// dialCluster connects to several servers. It waits for their fail-over for as long as that takes on this machine;
// TestDialTime has the limits of users.
func dialCluster(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	cfg.RetryFor = busy.Patience()
	c, err := client.Dial(busy.Context(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// A standby that is first in the list sends on to the active server.
func TestStandbyFirst(t *testing.T) {
	overEach(t, func(t *testing.T, scheme string) {
		w, first := inMemory(t), standBy(t)
		c := dialCluster(t, client.Config{Addrs: []string{scheme + first.addr, scheme + w.listen()}})
		if c.SessionName() == "" {
			t.Error("no session")
		}
	})
}

// A client of several servers tries each at once, and goes on until a fail-over is over: for 10 s, or until its context
// ends. Then the standby's refusal is the answer.
func TestDialTime(t *testing.T) {
	for name, c := range map[string]struct {
		active   int           // the attempt that the active server answers
		ends     time.Duration // when the context does
		succeeds bool
		from, to time.Duration // when Dial returns
	}{
		"the second is active": {2, time.Hour, true, 0, 0},
		"a slow fail-over":     {15, time.Hour, true, 100 * time.Millisecond, 9 * time.Second}, // pauses are random
		"no fail-over":         {1000, time.Hour, false, 10 * time.Second, 11 * time.Second},
		"an impatient caller":  {1000, 300 * time.Millisecond, false, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, other, dials := inMemory(t), standByInside(t), 0
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				began := time.Now()
				got, err := client.DialOver(ctx, func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
					if dials++; dials < c.active {
						return other.door.Dial(ctx, hello)
					}
					return w.inside(ctx, hello)
				}, client.Config{Addrs: []string{"a:1", "b:1"}})
				took := time.Since(began)
				if c.succeeds && err != nil || !c.succeeds && !isCode(err, interlock.CodeNotOwner) ||
					took < c.from || took > c.to {
					t.Errorf("%v after %v and %d attempts", err, took, dials)
				}
				if err == nil {
					closeClient(t, got)
				}
			})
		})
	}
}

// A client that begins during a fail-over waits for its end.
func TestDialDuringFailOver(t *testing.T) {
	w := onDisk(t)
	addr := w.listen()
	w.stop()
	second := standBy(t)
	started := make(chan struct{})
	go func() {
		defer close(started)
		<-second.refused
		<-second.refused
		w.start() // at its address
	}()
	dialCluster(t, client.Config{Addrs: []string{addr, second.addr}})
	<-started // a client can be there before start returns
}

// The active server dies. The other one stands by for some attempts, or is dead, too, and then takes
// over. The lease stays, and is released there.
func TestLeaseOutlivesItsServer(t *testing.T) {
	for _, dead := range []bool{false, true} {
		t.Run(map[bool]string{false: "StandbyTakesOver", true: "BothDead"}[dead], func(t *testing.T) {
			w := onDisk(t)
			first, second := w.listen(), standBy(t)
			c := dialCluster(t, client.Config{Addrs: []string{first, second.addr}, SessionTTL: interlock.MaxTTL})
			s := &stage{t: t, w: w, ctx: busy.Context(t)}
			held := s.acquire(c, exclusively("k"))
			ctx, name := held.Context(), c.SessionName()

			w.stop()
			if dead {
				second.stop()
			} else {
				await(t, second.refused, "the standby to be asked")
				await(t, second.refused, "the standby to be asked again")
				second.stop()
			}
			w.addr = second.addr
			w.start()

			if err := c.CheckFence(s.ctx, "k", held.Fence()); err != nil || ctx.Err() != nil || c.SessionName() != name {
				t.Errorf("after the fail-over: %v, %v, session %s was %s", err, context.Cause(ctx), c.SessionName(), name)
			}
			s.release(held, "done")
		})
	}
}

// A server that accepts connections and answers nothing costs a quarter of the lease's time, and
// not all of it.
func TestSilentServerLeavesTime(t *testing.T) {
	w := onDisk(t)
	first, second := w.listen(), standBy(t)
	const ttl = 20 * time.Second // three quarters of it are long beside what a busy machine delays
	c := dialCluster(t, client.Config{Addrs: []string{first, second.addr}, SessionTTL: ttl})
	s := &stage{t: t, w: w, ctx: busy.Context(t)}
	held := s.acquire(c, exclusively("k"))
	ctx := held.Context()

	w.stop()
	silent := silentAt(t, first)
	await(t, silent, "the silent server to be asked")
	second.stop()
	w.addr = second.addr
	w.start()
	if err := c.CheckFence(s.ctx, "k", held.Fence()); err != nil || ctx.Err() != nil {
		t.Errorf("after the fail-over: %v, %v", err, context.Cause(ctx))
	}
	s.release(held, "done")
}

// A name that leads to a standby and to the active server is enough.
func TestNameOfTwoServers(t *testing.T) {
	overEach(t, func(t *testing.T, scheme string) {
		w := inMemory(t)
		first := standBy(t)
		_, port, _ := net.SplitHostPort(first.addr)
		w.addr = net.JoinHostPort("127.0.0.2", port)
		w.listen()
		c, err := client.DialLookup(
			busy.Context(t), client.Config{Addrs: []string{scheme + net.JoinHostPort("servers.test", port)}},
			func(context.Context, string) ([]string, error) { return []string{"127.0.0.1", "127.0.0.2"}, nil },
		)
		if err != nil {
			t.Fatal(err)
		}
		closeClient(t, c)
	})
}

// A refusal that no other server would change is the answer at once.
func TestRefusalEndsTheSearch(t *testing.T) {
	refusal := &interlock.Error{Code: interlock.CodeForbidden, Message: "no"}
	dials := 0
	_, err := client.New(busy.Context(t), func(context.Context, proto.Hello) (proto.ClientLink, error) {
		dials++
		return nil, refusal
	}, client.Config{})
	if !isCode(err, interlock.CodeForbidden) || dials != 1 {
		t.Errorf("%v after %d attempts", err, dials)
	}
}
