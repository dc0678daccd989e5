package client_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// world is a whole server with its journal, which outlives it.
type world struct {
	t       testing.TB
	open    func(context.Context) (journal.Journal, error)
	streams server.StreamConfig

	shard *shard.Shard
	srv   *server.Server
	mu    sync.Mutex // of door, which clients dial while it is replaced
	door  *server.Streams
	leave func() // stops the gRPC door
	addr  string // of the gRPC door, once it listens; a restart keeps it
}

// inMemory is a world with a journal in memory.
func inMemory(t testing.TB) *world {
	store := &memjournal.Store{}
	return begin(t, func(ctx context.Context) (journal.Journal, error) { return store.Open(ctx) }, server.StreamConfig{})
}

// onDisk is a world with a journal in files.
func onDisk(t testing.TB) *world {
	dir := t.TempDir()
	return begin(t, func(ctx context.Context) (journal.Journal, error) {
		return filejournal.Open(ctx, dir, filejournal.Options{})
	}, server.StreamConfig{})
}

func begin(t testing.TB, open func(context.Context) (journal.Journal, error), streams server.StreamConfig) *world {
	w := &world{t: t, open: open, streams: streams}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.t.Helper()
	j, err := w.open(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	seen := server.NewObserver(nil, nil)
	if w.shard, err = shard.Open(context.Background(), shard.Config{Journal: j, Observer: seen}); err != nil {
		w.t.Fatal(err)
	}
	if w.srv, err = server.New(server.Config{Shard: w.shard, Observer: seen, Logger: quiet}); err != nil {
		w.t.Fatal(err)
	}
	door := server.NewStreams(w.srv, w.streams)
	w.mu.Lock()
	w.door = door
	w.mu.Unlock()
	if w.addr != "" {
		w.listen()
	}
}

// listen opens the gRPC door.
func (w *world) listen() string {
	w.t.Helper()
	if w.addr == "" {
		w.addr = busy.Ports(w.t, 1)[0]
	}
	l, err := net.Listen("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.leave = listenWith(w.door.Server(), l)
	return w.addr
}

// listenWith runs a server at an address until stop, which returns when the address is free again: Serve
// can begin after Stop, and holds it until then.
func listenWith(rpc *server.StreamServer, l net.Listener) (stop func()) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = rpc.Serve(l)
	}()
	return func() {
		rpc.Stop()
		<-served
	}
}

// stop ends the server as its process would.
func (w *world) stop() {
	if w.shard == nil {
		return
	}
	w.srv.Drain()
	if err := w.shard.Drain(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.door.Cut(&interlock.Error{Code: interlock.CodeShuttingDown, Message: "the server stops"})
	if w.leave != nil {
		w.leave()
	}
	if err := w.shard.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.shard, w.leave = nil, nil
}

func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// dial connects a client over the in-process pipe; the dialer finds the server that runs at
// that moment.
func (w *world) dial(cfg client.Config) *client.Client {
	w.t.Helper()
	return w.connect(w.inside, cfg)
}

// inside is the dialer of the server that runs at that moment.
func (w *world) inside(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
	w.mu.Lock()
	door := w.door
	w.mu.Unlock()
	return door.Dial(ctx, hello)
}

func (w *world) connect(dialer client.Dialer, cfg client.Config) *client.Client {
	w.t.Helper()
	c, err := client.New(context.Background(), dialer, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { closeClient(w.t, c) })
	return c
}

func closeClient(t testing.TB, c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), busy.Patience())
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error("close:", err)
	}
}

// breaker is a dialer that can cut its links and lose their frames.
type breaker struct {
	dial client.Dialer

	mu    sync.Mutex
	links []*brokenLink
	// lose looks at each frame from the server; when it returns true, the link breaks instead
	// of delivering it.
	lose func(*proto.ServerFrame) bool
	down chan struct{} // not nil: dialing waits until it is closed
	deny error         // not nil: what dialing returns
	late time.Duration // how long each frame from the server is under way
}

func (b *breaker) Dial(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
	b.mu.Lock()
	down, deny := b.down, b.deny
	b.mu.Unlock()
	if deny != nil {
		return nil, deny
	}
	if down != nil {
		select {
		case <-down:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	link, err := b.dial(ctx, hello)
	if err != nil {
		return nil, err
	}
	l := &brokenLink{ClientLink: link, b: b}
	b.mu.Lock()
	b.links = append(b.links, l)
	b.mu.Unlock()
	return l, nil
}

// cut breaks all links.
func (b *breaker) cut() {
	b.mu.Lock()
	links := b.links
	b.links = nil
	b.mu.Unlock()
	for _, l := range links {
		l.Close(nil)
	}
}

// refuse makes dialing fail, or with nil succeed again.
func (b *breaker) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deny = err
}

// block makes dialing wait; the function that it returns ends that.
func (b *breaker) block() (unblock func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blockLocked()
}

// blockLocked is block for a function of setLose.
func (b *breaker) blockLocked() (unblock func()) {
	ch := make(chan struct{})
	b.down = ch
	return func() {
		b.mu.Lock()
		b.down = nil
		b.mu.Unlock()
		close(ch)
	}
}

func (b *breaker) setLose(lose func(*proto.ServerFrame) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose = lose
}

// delay has each frame from the server be under way for so long.
func (b *breaker) delay(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = d
}

type brokenLink struct {
	proto.ClientLink
	b *breaker
}

func (l *brokenLink) Recv(f *proto.ServerFrame) error {
	if err := l.ClientLink.Recv(f); err != nil {
		return err
	}
	l.b.mu.Lock()
	late := l.b.late
	l.b.mu.Unlock()
	if late > 0 {
		<-time.After(late)
	}
	l.b.mu.Lock()
	lost := l.b.lose != nil && l.b.lose(f)
	if lost {
		l.b.lose = nil
	}
	l.b.mu.Unlock()
	if lost {
		l.Close(nil)
		return io.ErrUnexpectedEOF
	}
	return nil
}

var errInVain = errors.New("it was waited for in vain")

// await receives what a channel brings, or fails.
func await[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	timer := time.NewTimer(busy.Patience())
	defer timer.Stop()
	select {
	case v = <-ch:
	case <-timer.C:
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

// errStopped is why a test's agent was stopped.
var errStopped = errors.New("the agent was stopped")

func freshID() (id [16]byte) {
	_, _ = rand.Read(id[:])
	return id
}

func exclusively(keys ...interlock.Key) client.Request {
	return client.Request{Keys: keys, OnConflict: interlock.Wait}
}
