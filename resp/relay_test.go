package resp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/server"
)

// elsewhere is the directory of a server without shards.
type elsewhere struct {
	owner *atomic.Pointer[server.Active]
}

func (e elsewhere) Locate(interlock.Namespace) server.Location {
	return server.Location{Active: *e.owner.Load()}
}
func (e elsewhere) Locations() []server.Location { return []server.Location{e.Locate("")} }
func (e elsewhere) Peers() []server.Peer         { return nil }

// relayed makes a door of a server without shards, in front of the rig's. Its connections to any other address fail.
func (r *rig) relayed() (*Server, *atomic.Pointer[server.Active]) {
	r.Helper()
	owner := new(atomic.Pointer[server.Active])
	owner.Store(&server.Active{HTTP: "http://owner", RESP: "owner:6379"})
	cfg := server.Config{Credentials: r.credentials, Logger: slog.New(slog.DiscardHandler)}
	api, err := server.NewRouter(cfg, elsewhere{owner})
	if err != nil {
		r.Fatal(err)
	}
	return NewServer(Config{
		API: func() *server.Server { return api }, Log: slog.New(slog.DiscardHandler),
		Dial: func(_ context.Context, addr string) (net.Conn, error) {
			if addr != "owner:6379" {
				return nil, errors.New("no such server")
			}
			near, far := net.Pipe()
			go r.door.enter(far).serve()
			return near, nil
		},
	}), owner
}

// by makes a client that comes in at another door.
func (r *rig) by(door *Server, name string) {
	near, far := net.Pipe()
	r.conns[name] = newPeer(near)
	go door.enter(far).serve()
}

// A connection about keys of another server is relayed there with what it said of itself. What came behind the first
// command about a key follows it, in order.
func TestRelay(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		door, _ := r.relayed()
		defer door.Shutdown(context.Background())
		r.by(door, "a")
		r.wants("a", "AUTH acme/ann x", "+OK")
		r.wants("a", "CLIENT SETNAME worker", "+OK")
		r.wants("a", "PING", "+PONG")
		p := r.peer("a")
		var all []byte
		for _, words := range []string{"SET k one NX EX 30", "GET k", "SET k two NX EX 30", "CLIENT GETNAME"} {
			all = append(all, encode(strings.Fields(words))...)
		}
		go p.conn.Write(all)
		for _, want := range []string{"+OK", "$one", "nil", "$worker"} {
			if got := r.answer(p); got != want {
				t.Errorf("the answer is %q, want %s", got, want)
			}
		}
		r.wants("b", "AUTH acme/bob x", "+OK") // at the owner itself
		if got := r.do("b", "INTERLOCK.WHY", "k"); !strings.Contains(got, "worker") {
			t.Errorf("the owner does not know the client's name: %s", got)
		}
		r.wants("a", "DEL k", ":1")
		r.wants("b", "EXISTS k", ":0")
	})
}

// A relayed connection that comes to a server without the keys is refused and closed. One for an owner that cannot be
// reached is refused, and stays.
func TestRelayOnce(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		door, owner := r.relayed()
		defer door.Shutdown(context.Background())
		r.by(door, "second")
		r.wants("second", "CLIENT FORWARDED 10.0.0.9:5", "+OK")
		r.wants("second", "GET k", "-READONLY *")
		if _, err := r.peer("second").in.ReadByte(); err == nil {
			t.Error("a connection that was relayed twice stays open")
		}
		owner.Store(&server.Active{HTTP: "http://away", RESP: "away:6379"})
		r.by(door, "a")
		r.wants("a", "GET k", "-READONLY *")
		owner.Store(&server.Active{HTTP: "http://owner", RESP: "owner:6379"})
		r.wants("a", "GET k", "*") // a new owner is found by the same connection
	})
}

// A client that withdraws leaves nothing behind, and an owner that closes its end ends the client's, too.
func TestRelayEnds(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		door, _ := r.relayed()
		r.by(door, "a")
		r.wants("a", "SET k one NX EX 30", "+OK")
		r.door.Shutdown(context.Background())
		if _, err := r.peer("a").in.ReadByte(); err == nil {
			t.Error("the client's connection outlives the owner's end")
		}
		door.Shutdown(context.Background())
	})
}
