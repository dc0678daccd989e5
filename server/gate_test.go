package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

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
	listen := func(words bool) net.Listener {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return g.gate.Listener(l, words)
	}
	httpServer, streamServer := d.server.HTTPServer(), NewStreams(d.server, StreamConfig{}).Server()
	for _, serve := range []struct {
		addr *string
		l    net.Listener
		run  func(net.Listener) error
		stop func()
	}{
		{&g.http, listen(true), httpServer.Serve, func() { _ = httpServer.Close() }},
		{&g.grpc, listen(false), streamServer.Serve, streamServer.Stop},
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
// When all are kept, newcomers get that answer over HTTP, and are closed on the session port.
func TestGateFull(t *testing.T) {
	g := newGated(t, 3)
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
	status, body := g.ask(g.dial(g.http), g.secret)
	if status != 503 || !strings.Contains(body, `"code":"overloaded"`) || !strings.Contains(body, "connections") {
		t.Errorf("%d %s", status, body)
	}
	g.closed(g.dial(g.grpc))
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
