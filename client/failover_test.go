package client_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// standby is a server that stands by at an address.
type standby struct {
	addr string
	stop func()
	// refused gets a value for each client that was refused, as long as there is room.
	refused chan struct{}
}

// standBy starts one.
func standBy(t *testing.T, addr string) *standby {
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
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.stop = listenWith(server.NewStreams(srv, server.StreamConfig{}).Server(), l)
	t.Cleanup(s.stop)
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

func dialCluster(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(patient(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// A standby that is first in the list sends on to the active server at once.
func TestStandbyFirst(t *testing.T) {
	overEach(t, func(t *testing.T, scheme string) {
		w, first := inMemory(t), standBy(t, "127.0.0.1:0")
		began := time.Now()
		c := dialCluster(t, client.Config{Addrs: []string{scheme + first.addr, scheme + w.listen()}})
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if c.SessionName() == "" {
			t.Error("no session")
		}
	})
}

// A client that begins during a fail-over waits for its end.
func TestDialDuringFailOver(t *testing.T) {
	w := onDisk(t)
	addr := w.listen()
	w.stop()
	second := standBy(t, "127.0.0.1:0")
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
			first, second := w.listen(), standBy(t, "127.0.0.1:0")
			c := dialCluster(t, client.Config{Addrs: []string{first, second.addr}, SessionTTL: 10 * time.Second})
			s := &stage{t: t, w: w, ctx: patient(t)}
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
	first, second := w.listen(), standBy(t, "127.0.0.1:0")
	const ttl = 10 * time.Second // its quarter is long beside what a busy machine delays
	c := dialCluster(t, client.Config{Addrs: []string{first, second.addr}, SessionTTL: ttl})
	s := &stage{t: t, w: w, ctx: patient(t)}
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
		first := standBy(t, "127.0.0.1:0")
		_, port, _ := net.SplitHostPort(first.addr)
		w.addr = net.JoinHostPort("127.0.0.2", port)
		w.listen()
		c, err := client.DialLookup(
			patient(t), client.Config{Addrs: []string{scheme + net.JoinHostPort("servers.test", port)}},
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
	first, second := standBy(t, "127.0.0.1:0"), standBy(t, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(patient(t), 300*time.Millisecond)
	defer cancel()
	_, err := client.Dial(ctx, client.Config{Addrs: []string{first.addr, second.addr}})
	if !isCode(err, interlock.CodeNotOwner) {
		t.Errorf("two standbys: %v", err)
	}
	refusal := &interlock.Error{Code: interlock.CodeForbidden, Message: "no"}
	dials := 0
	_, err = client.New(patient(t), func(context.Context, proto.Hello) (proto.ClientLink, error) {
		dials++
		return nil, refusal
	}, client.Config{})
	if !isCode(err, interlock.CodeForbidden) || dials != 1 {
		t.Errorf("%v after %d attempts", err, dials)
	}
}
