package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/protomessage"
	"github.com/interlockdev/interlock/proto"
)

// gatedServer is a server with two doors that share a gate.
type gatedServer struct {
	*testing.T
	gate       *Gate
	http, grpc string
	secret     string
}

func newGated(t *testing.T, limit int) *gatedServer {
	t.Helper()
	d := newDoor(t)
	g := &gatedServer{T: t, gate: NewGate(limit, slog.New(slog.DiscardHandler)), secret: d.reopenWithCredentials()}
	listen := func() net.Listener {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return g.gate.Listener(l)
	}
	httpServer, streamServer := d.server.HTTPServer(), NewStreams(d.server, StreamConfig{}).Server()
	for _, serve := range []struct {
		addr *string
		l    net.Listener
		run  func(net.Listener) error
		stop func()
	}{
		{&g.http, listen(), httpServer.Serve, func() { _ = httpServer.Close() }},
		{&g.grpc, listen(), streamServer.Serve, streamServer.Stop},
	} {
		*serve.addr = serve.l.Addr().String()
		ended := make(chan error, 1)
		go func() { ended <- serve.run(serve.l) }()
		t.Cleanup(func() {
			serve.stop()
			if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
	}
	return g
}

func (g *gatedServer) dial(addr string) net.Conn {
	g.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(busy.Patience()))
	return conn
}

// ask sends one request and returns the status of the answer and its body.
func (g *gatedServer) ask(conn net.Conn, secret string) (status int, body string) {
	g.Helper()
	if _, err := fmt.Fprintf(
		conn, "GET /v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", secret,
	); err != nil {
		g.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		g.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		g.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// closed waits until the server has closed a connection without a word.
func (g *gatedServer) closed(conn net.Conn) {
	g.Helper()
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		g.Fatalf("%d bytes, %v: want the end", n, err)
	}
}

// Half of the places at most are for connections that have shown no credential, at either door,
// whatever else they have said; the oldest of them go first, and no others.
func TestGateAnonymous(t *testing.T) {
	g := newGated(t, 4)
	working := g.dial(g.http)
	if status, body := g.ask(working, g.secret); status != 200 {
		t.Fatal(status, body)
	}
	silent := g.dial(g.grpc)
	wrong := g.dial(g.http)
	if status, _ := g.ask(wrong, "wrong"); status != 401 {
		t.Fatal(status)
	}
	for i := range 20 {
		newcomer := g.dial(g.http)
		if status, body := g.ask(newcomer, g.secret); status != 200 {
			t.Fatalf("newcomer %d: %d %s", i, status, body)
		}
		_ = newcomer.Close()
		half := g.dial(g.http)
		if _, err := fmt.Fprint(half, "GET /v1/keys HTTP/1.1\r\nHo"); err != nil {
			t.Fatal(err)
		}
	}
	g.closed(silent)
	g.closed(wrong)
	if status, body := g.ask(working, g.secret); status != 200 {
		t.Fatal(status, body)
	}
}

// admitted counts the connections that have a place for good.
func (g *gatedServer) admitted() int {
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	return g.gate.open - g.gate.anonymous.Len()
}

// A place is kept by a credential that was shown, over HTTP, in our own frames and in gRPC alike.
// When all are kept, the next ones are answered, and closed when others need their place.
func TestGateFull(t *testing.T) {
	g := newGated(t, 4)
	if status, body := g.ask(g.dial(g.http), g.secret); status != 200 {
		t.Fatal(status, body)
	}
	link := proto.ClientFramed(g.dial(g.grpc), 1<<20, proto.IdleTimeouts{Ask: time.Hour, Expect: time.Hour})
	if err := link.Begin(proto.Hello{Namespace: "acme", Credential: g.secret}); err != nil {
		t.Fatal(err)
	}
	// Until it is answered it is anonymous, and the next one may take its place.
	if err := link.Send(&proto.ClientFrame{
		Ops: []proto.Op{{Kind: proto.OpOpen, Slot: 1, Seq: 1, Agent: "framed"}},
	}); err != nil {
		t.Fatal(err)
	}
	var frame proto.ServerFrame
	if err := link.Recv(&frame); err != nil {
		t.Fatal(err)
	}
	client, err := grpc.NewClient(g.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+g.secret)
	stream := protomessage.Open(ctx, t, client)
	if err := stream.SendMsg(protomessage.ClientFrame(t, `ops { slot: 1 seq: 1 open { agent: "py" } }`)); err != nil {
		t.Fatal(err)
	}
	if err := stream.Recv(&struct{}{}); err != nil {
		t.Fatal(err)
	}
	if n := g.admitted(); n != 3 {
		t.Fatalf("%d connections have a place for good, want 3", n)
	}
	for range 3 {
		next := g.dial(g.http)
		if status, body := g.ask(next, g.secret); status != 200 || g.admitted() != 3 {
			t.Errorf("%d %s, %d have a place for good", status, body, g.admitted())
		}
		_ = g.dial(g.http)
		g.closed(next)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

// When something else has taken all descriptors, the oldest anonymous connection frees its own, so
// that the next one can be accepted.
func TestGateWithoutDescriptors(t *testing.T) {
	g := newGated(t, 0)
	working, silent := g.dial(g.http), g.dial(g.http)
	for _, conn := range []net.Conn{working, silent} {
		if status, _ := g.ask(conn, "wrong"); status != 401 {
			t.Fatal(status)
		}
	}
	if status, body := g.ask(working, g.secret); status != 200 {
		t.Fatal(status, body)
	}
	g.gate.crowded()
	g.closed(silent)
	if status, body := g.ask(working, g.secret); status != 200 {
		t.Fatal(status, body)
	}
	g.gate.crowded() // no connection can be closed
	if status, body := g.ask(working, g.secret); status != 200 {
		t.Fatal(status, body)
	}
}

// Whatever connections come, ask and go: a credential with fewer connections than another one gets a place, one with
// no more than its equal part keeps them all, and those that have shown nothing have places.
func TestGateIsFair(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		g := NewGate(2+random.IntN(60), slog.New(slog.DiscardHandler))
		room, names := g.limit-max(1, g.limit/newcomers), 1+random.IntN(5)
		var here []*visitor
		for step := range 1000 {
			had, newest := map[string]int{}, map[string]any{}
			for of, l := range g.admitted {
				had[of], newest[of] = l.Len(), l.Back().Value
			}
			came := ""
			switch n := random.IntN(10); {
			case n < 4 || len(here) == 0:
				here = append(here, g.enter(new(net.TCPConn)))
			case n < 9:
				v := here[random.IntN(len(here))]
				name := strconv.Itoa(int(math.Sqrt(float64(random.IntN(names * names))))) // some come more often
				known := v.in != &g.anonymous
				v.admit(&Identity{Namespace: "acme", Principal: &interlock.Principal{Name: name}})
				if came = "acme/" + name; known && v.of != came {
					t.Fatalf("seed %d, step %d: a connection of %s belongs to %s", seed, step, came, v.of)
				}
				if known {
					break // it had a place, and keeps it
				}
				if v.in == &g.anonymous && g.anonymous.Back() != v.at {
					t.Fatalf("seed %d, step %d: a connection that has asked is older than others", seed, step)
				}
				for of, n := range had {
					if v.in == &g.anonymous && n >= had[came]+2 {
						t.Fatalf("seed %d, step %d: %s with %d gets no place beside %s with %d", seed, step, came, had[came], of, n)
					}
				}
			default:
				i := random.IntN(len(here))
				_ = here[i].Close()
				here = slices.Delete(here, i, i+1)
			}
			parts := len(had)
			if had[came] == 0 && came != "" {
				parts++
			}
			gone, total := 0, 0
			here = slices.DeleteFunc(here, func(v *visitor) bool {
				if v.in == nil && v.of != "" && (had[v.of]*parts <= room || had[v.of] < had[came]+2 || newest[v.of] != v) {
					t.Fatalf("seed %d, step %d: %s with %d of %d for %d loses one to %s with %d, the newest: %v", seed, step, v.of,
						had[v.of], room, parts, came, had[came], newest[v.of] == v)
				}
				if v.in == nil {
					gone++
				}
				return v.in == nil
			})
			for _, l := range g.admitted {
				total += l.Len()
			}
			if gone > 1 || total > room || len(here) != g.open || g.open != total+g.anonymous.Len() || g.open > g.limit ||
				g.anonymous.Len() > max(1, g.limit/2) || len(g.admitted) > names {
				t.Fatalf("seed %d, step %d: %d open, %d admitted, %d anonymous of %d; %d were closed", seed, step, g.open, total,
					g.anonymous.Len(), g.limit, gone)
			}
		}
	}
}
