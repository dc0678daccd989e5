package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// pipeListener returns connections within the process. Their deadlines pass with the clock of a
// synctest bubble.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7420} }

// listen serves the door's real http.Server; dial opens a connection to it.
func (d *door) listen() (dial func() net.Conn) {
	d.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := d.server.HTTPServer()
	served := make(chan error, 1)
	go func() { served <- ServeStrict(srv, l) }()
	d.Cleanup(func() {
		srv.Close()
		<-served
	})
	return func() net.Conn {
		ours, theirs := net.Pipe()
		l.conns <- theirs
		d.Cleanup(func() { ours.Close() })
		return ours
	}
}

// Each of these clients costs a connection for a bounded time, and nothing else.
func TestSlowClientsAreCutOff(t *testing.T) {
	for _, c := range []struct {
		name string
		send string
		cut  time.Duration // when the connection is closed
	}{
		{"sends nothing", "", readTimeout},
		{"half a header", "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\n", readTimeout},
		{
			"half a body",
			"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
			readTimeout,
		},
		{
			"half a chunk",
			"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: " +
				"chunked\r\n\r\n5\r\n{",
			readTimeout,
		},
		{"stays idle after a call", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newDoor(t)
				conn := d.listen()()
				start := time.Now()
				go func() { _, _ = io.WriteString(conn, c.send) }()
				_, err := io.Copy(io.Discard, conn)
				if took := time.Since(start); err != nil || took > c.cut+time.Second || took < c.cut-time.Second {
					t.Errorf("closed after %v with %v, want %v", took, err, c.cut)
				}
			})
		})
	}
}

// A client that asks and never reads.
func TestNeverReadingClientIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		conn := d.listen()()
		start := time.Now()
		if _, err := io.WriteString(conn, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		// The server closes; until then the client only waits to be able to write.
		for {
			if _, err := io.WriteString(conn, "x"); err != nil {
				break
			}
		}
		if took := time.Since(start); took > writeTimeout+2*time.Second {
			t.Errorf("cut off after %v", took)
		}
	})
}

// A call that waits longer than a request may take to arrive is not cut off.
func TestLongPollOutlivesTheReadTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"k"}]}`).want(200)
		conn := d.listen()()
		const body = `{"wait_ms":55000,"claims":[{"key":"k"}]}`
		start := time.Now()
		fmt.Fprintf(
			conn,
			"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body,
		)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); answer.StatusCode != 202 || took != 55*time.Second {
			t.Errorf("%s after %v", answer.Status, took)
		}
	})
}

// A caller leaves the line when its connection breaks.
func TestBrokenConnectionLeavesTheLine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.acquire("a", "k")
		conn := d.listen()()
		const body = `{"wait_ms":20000,"claims":[{"key":"k"}]}`
		fmt.Fprintf(
			conn,
			"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body,
		)
		synctest.Wait()
		if n := d.get("/v1/keys/k").num("length"); n != 1 {
			t.Fatalf("%d in line", n)
		}
		conn.Close()
		synctest.Wait()
		if n := d.get("/v1/keys/k").num("length"); n != 0 {
			t.Fatalf("%d in line", n)
		}
	})
}

// A paused reader of events or documents holds up neither callers nor other readers,
// and is cut off in the end.
func TestPausedReaderBlocksNobody(t *testing.T) {
	t.Run("events", func(t *testing.T) { pausedReader(t, "/v1/events?follow=true", `"event":"ended"`) })
	t.Run("watch", func(t *testing.T) { pausedReader(t, "/v1/watch?values=true", "event: written") })
}

func pausedReader(t *testing.T, path, counted string) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.loose = true // what many answers look like is not the question
		dial := d.listen()
		paused, reading := dial(), dial()
		ask := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
		for _, conn := range []net.Conn{paused, reading} {
			if _, err := io.WriteString(conn, ask); err != nil {
				t.Fatal(err)
			}
		}
		// It reads of the header, and then no more.
		one := make([]byte, 64)
		if _, err := io.ReadFull(paused, one); err != nil {
			t.Fatal(err)
		}
		lines := make(chan string, 10_000)
		go func() {
			defer close(lines)
			answer, err := http.ReadResponse(bufio.NewReader(reading), nil)
			if err != nil {
				return
			}
			for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
				lines <- scanner.Text()
			}
		}()
		synctest.Wait() // both follow
		const rounds = 500
		for range rounds {
			lease := d.acquire("a", "k")
			d.post("/v1/leases/"+lease+"/release", `{"note":"`+strings.Repeat("x", 1000)+`"}`).want(200)
			d.commitDoc("k", `"`+strings.Repeat("x", 1000)+`"`)
		}
		ended := 0
		for ended < rounds {
			if strings.Contains(<-lines, counted) {
				ended++
			}
		}
		start := time.Now()
		for {
			if _, err := io.WriteString(paused, "x"); err != nil {
				break
			}
		}
		if took := time.Since(start); took > writeTimeout+time.Second {
			t.Errorf("the paused reader was cut off after %v", took)
		}
		synctest.Wait()
		if n := d.server.streams.open["default"]; n != 1 {
			t.Errorf("%d readers are still counted", n)
		}
		reading.Close()
	})
}

// A body without an announced length may break off in the middle. The part that arrived is not
// a document.
func TestBodyThatBreaksOff(t *testing.T) {
	d := newDoor(t)
	put := func(end error) *reply {
		r := d.request("PUT", "/v1/state/doc", "", "Content-Type", "text/plain")
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(end))), -1
		return d.send(r)
	}
	put(io.ErrUnexpectedEOF).want(400, "invalid_request")
	d.get("/v1/state/doc").want(404, "unknown_document")
	put(io.EOF).want(200)
	if got := d.get("/v1/state/doc").want(200).raw; got != "hello" {
		t.Errorf("the document is %q", got)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	d := newDoor(t)
	d.server.shard = panickingShard{d.server.shard}
	d.get("/v1/keys").want(500, "internal")
}

type panickingShard struct{ Shard }

func (panickingShard) Survey(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	panic("an invariant is broken")
}
