package crashtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// fewFiles is a wrapper that lets the server open so many files.
func fewFiles(n int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, n)}
}

// quietly adds what keeps the log short, so that all of it is shown.
func quietly(args ...string) []string { return append([]string{"--log-level", "warn"}, args...) }

// regular is a client with one connection, which it keeps.
type regular struct {
	*site
	reused bool // by all calls of the last cycle
	n      int
}

func newRegular(t *testing.T, address string) *regular {
	return &regular{
		site: &site{
			t: t, base: "http://" + address, http: &http.Client{Transport: &http.Transport{}, Timeout: busy.Patience()},
		},
	}
}

func (c *regular) leave() { c.http.CloseIdleConnections() }

// cycle takes a lease and releases it.
func (c *regular) cycle(name string) error {
	c.n++
	c.reused = true
	ctx := httptrace.WithClientTrace(c.t.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { c.reused = c.reused && info.Reused },
	})
	a, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/leases", body: map[string]any{
		"agent": name, "ttl_ms": ttlMS, "claims": []any{map[string]any{"key": fmt.Sprintf("%s/%d", name, c.n)}},
		"purpose": strings.Repeat("fill the journal ", 20),
	}})
	if err == nil && a.Outcome != "granted" {
		err = &interlock.Error{Code: a.Code, Message: a.String()}
	}
	if err != nil {
		return err
	}
	a, err = c.do(
		ctx, call{method: http.MethodPost, path: "/v1/leases/" + a.Lease.ID + "/release", body: map[string]any{}},
	)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("release: %s", a)
	}
	return err
}

// halfOpen opens connections that say nothing, and returns them.
func halfOpen(t *testing.T, address string, n int) (conns []net.Conn) {
	t.Helper()
	for range n {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
	}
	return conns
}

// Silent connections take neither the journal's descriptors nor other callers' places:
// connected callers continue, also where the journal needs new files, and new ones are served.
func TestHalfOpenConnections(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Wrap: fewFiles(64), Args: quietly(tiny...)})
	connected := newRegular(t, server.HTTP)
	if err := connected.cycle("connected"); err != nil {
		t.Fatal(err)
	}
	halfOpen(t, server.GRPC, 200)
	for round := range 20 {
		halfOpen(t, server.HTTP, 20)
		for range 10 {
			if err := connected.cycle("connected"); err != nil {
				t.Fatalf("round %d: %v\n%s", round, err, server.Log())
			}
			if !connected.reused {
				t.Fatal("the connection of one who works was closed")
			}
		}
		newcomer := newRegular(t, server.HTTP)
		if err := newcomer.cycle("newcomer"); err != nil {
			t.Fatalf("round %d: a newcomer: %v\n%s", round, err, server.Log())
		}
		newcomer.leave()
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// When clients at work have taken all places, they keep them, and newcomers are answered as well, over connections that
// others may take over.
func TestEveryPlaceIsTaken(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Wrap: fewFiles(64), Args: quietly(tiny...)})
	var working []*regular
	for i := range 64 { // more than there are descriptors
		c := newRegular(t, server.HTTP)
		if err := c.cycle("working"); err != nil {
			t.Fatalf("client number %d: %v\n%s", i+1, err, server.Log())
		}
		working = append(working, c)
	}
	placed := 0
	for _, c := range working { // the first have the places
		if err := c.cycle("working"); err != nil {
			t.Fatalf("%v\n%s", err, server.Log())
		}
		if !c.reused {
			break
		}
		placed++
	}
	if placed < 10 || placed >= 64 {
		t.Fatalf("%d of 64 clients kept their connections, with 64 descriptors", placed)
	}
	for range 10 {
		for i, c := range working[:placed] {
			if err := c.cycle(fmt.Sprintf("working-%d", i)); err != nil || !c.reused {
				t.Fatalf("client number %d of %d is at work: %v\n%s", i+1, placed, err, server.Log())
			}
		}
		newcomer := newRegular(t, server.HTTP)
		if err := newcomer.cycle("newcomer"); err != nil {
			t.Fatalf("a newcomer: %v\n%s", err, server.Log())
		}
		newcomer.leave()
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// With more connections allowed than there are descriptors, the table of open files does
// fill up. The journal has kept some for itself, and the server lives on.
func TestTableOfFilesIsFull(t *testing.T) {
	dir := t.TempDir()
	server := launchtest.Start(
		t,
		launch.Config{
			DataDir: dir, Wrap: fewFiles(64), Args: quietly(append([]string{"--max-connections", "1000"}, tiny...)...),
		},
	)
	connected := newRegular(t, server.HTTP)
	if err := connected.cycle("connected"); err != nil {
		t.Fatal(err)
	}
	// They are taken into the backlog of the socket, so they connect, and the last of them
	// are accepted when there is room.
	conns := append(halfOpen(t, server.GRPC, 100), halfOpen(t, server.HTTP, 100)...)
	for i := range 300 {
		if err := connected.cycle("connected"); err != nil {
			t.Fatalf("cycle %d: %v\n%s", i, err, server.Log())
		}
		if !connected.reused {
			t.Fatal("the connection of one who works was closed")
		}
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	}
	if err := newRegular(t, server.HTTP).cycle("newcomer"); err != nil {
		t.Errorf("a newcomer afterwards: %v\n%s", err, server.Log())
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(server.Log(), "no file descriptor left for a connection") {
		t.Errorf("the table of open files was never full:\n%s", server.Log())
	}
	again := launchtest.Start(t, launch.Config{DataDir: dir, Log: io.Discard})
	if err := newRegular(t, again.HTTP).cycle("again"); err != nil {
		t.Error(err)
	}
}
