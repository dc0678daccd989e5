package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/bench"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/shard"
)

// BenchmarkHTTPCycle measures a lease over HTTP: one operation is an acquire and a release,
// durable on this machine's disk, by callers that each wait for their answers on a connection
// of their own. Echo is the same with a handler that decodes a JSON body and encodes it again
// and does nothing else: the cost of net/http itself. The client is as lean as can be, and the
// same for both.
func BenchmarkHTTPCycle(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("interlock/callers=%d", callers), func(b *testing.B) {
			j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			obs := NewObserver(nil, nil)
			sh, err := shard.Open(b.Context(), shard.Config{Journal: j, Observer: obs})
			if err != nil {
				b.Fatal(err)
			}
			s, err := New(Config{Shard: sh, Observer: obs})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkCycles(b, s.HTTPServer(), callers)
			if err := sh.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(fmt.Sprintf("echo/callers=%d", callers), func(b *testing.B) {
			benchmarkCycles(b, &http.Server{Handler: http.HandlerFunc(bench.AnswerEcho)}, callers)
		})
	}
}

func benchmarkCycles(b *testing.B, srv *http.Server, callers int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	clients := make([]*leanClient, callers)
	for i := range clients {
		if clients[i], err = dialLean(l.Addr().String()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, c := range clients {
		rounds := b.N / callers
		if i < b.N%callers {
			rounds++
		}
		body := fmt.Appendf(nil, `{"agent":"bench-%d","claims":[{"key":"account:%d","mode":"exclusive"}]}`, i, i)
		wg.Go(func() {
			for range rounds {
				answer, err := c.post("/v1/leases", body)
				if err != nil {
					b.Error(err)
					return
				}
				_, rest, ok := bytes.Cut(answer, []byte(`"id":"`))
				if !ok || len(rest) < 34 {
					b.Errorf("no lease in %s", answer)
					return
				}
				if _, err = c.post("/v1/leases/"+string(rest[:34])+"/release", []byte(`{"outcome":"done"}`)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	for _, c := range clients {
		_ = c.conn.Close()
	}
	_ = srv.Close()
	<-served
}

// leanClient is HTTP/1.1 on one connection, with next to no work of its own.
type leanClient struct {
	conn net.Conn
	r    *bufio.Reader
	out  []byte
	in   []byte
}

func dialLean(addr string) (*leanClient, error) {
	conn, err := net.Dial("tcp", addr)
	return &leanClient{conn: conn, r: bufio.NewReader(conn)}, err
}

func (c *leanClient) post(path string, body []byte) ([]byte, error) {
	c.out = append(c.out[:0], "POST "...)
	c.out = append(c.out, path...)
	c.out = append(c.out, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	good := bytes.HasPrefix(line, []byte("HTTP/1.1 200"))
	length := 0
	for {
		line, err = c.r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
	}
	if cap(c.in) < length {
		c.in = make([]byte, length)
	}
	c.in = c.in[:length]
	if _, err = io.ReadFull(c.r, c.in); err != nil {
		return nil, err
	}
	if !good {
		return nil, fmt.Errorf("%s", c.in)
	}
	return c.in, nil
}
