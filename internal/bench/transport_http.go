package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// httpCrew are connections with one agent each.
func (s *interlockSite) httpCrew(ctx context.Context, n int) (*Crew, error) {
	header := "Host: " + s.at.HTTP + "\r\n"
	if s.at.Credential != "" {
		header += "Authorization: Bearer " + s.at.Credential + "\r\n"
	}
	if s.at.Namespace != "" {
		header += "Interlock-Namespace: " + string(s.at.Namespace) + "\r\n"
	}
	return dialHTTP(ctx, n, s.at.HTTP, s.at.TLS, header)
}

// dialHTTP connects n agents to a server that speaks HTTP/JSON as Interlock does.
func dialHTTP(ctx context.Context, n int, addr string, over *tls.Config, header string) (*Crew, error) {
	callers, agents := make([]*caller, n), make([]Agent, n)
	crew := &Crew{Agents: agents, Close: func() {
		for _, c := range callers {
			if c != nil {
				c.close()
			}
		}
	}}
	err := each(ctx, n, dialWidth, func(dialing context.Context, i int) error {
		conn, err := (&net.Dialer{}).DialContext(dialing, "tcp", addr)
		if err != nil {
			return err
		}
		if over != nil {
			own := over.Clone()
			if own.ServerName == "" {
				own.ServerName, _, _ = net.SplitHostPort(addr)
			}
			conn = tls.Client(conn, own)
		}
		callers[i] = &caller{conn: conn, r: bufio.NewReader(conn), header: header}
		callers[i].stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		agents[i] = &httpAgent{callers[i], fmt.Sprint("bench-", i)}
		return nil
	})
	if err != nil {
		crew.Close()
		return nil, err
	}
	return crew, nil
}

// httpAgent is an agent without a session: what it holds lives by its own ttl.
type httpAgent struct {
	c    *caller
	name string
}

type httpLock struct {
	c  *caller
	id string
}

// Release implements Lock.
func (l httpLock) Release(context.Context) error {
	status, answer, err := l.c.call(http.MethodPost, "/v1/leases/"+l.id+"/release", "{}")
	if err == nil && status != http.StatusOK {
		err = unexpected(status, answer)
	}
	return err
}

// Acquire implements Agent: it takes a place in line and then waits for the ticket.
func (a *httpAgent) Acquire(_ context.Context, key string, queued func()) (Lock, error) {
	status, answer, err := a.c.call(http.MethodPost, "/v1/leases",
		`{"agent":"`+a.name+`","claims":[{"key":"`+key+`"}],"on_conflict":"wait","wait_ms":0}`)
	if err == nil && status == http.StatusAccepted && queued != nil {
		queued()
	}
	for err == nil && status == http.StatusAccepted {
		var line struct{ Ticket struct{ ID string } }
		if err := json.Unmarshal(answer, &line); err != nil {
			return nil, err
		}
		status, answer, err = a.c.call(http.MethodGet, "/v1/tickets/"+line.Ticket.ID+"?wait_ms=55000", "")
	}
	return a.granted(status, answer, err)
}

// Try implements Agent.
func (a *httpAgent) Try(_ context.Context, key string) (Lock, error) {
	status, answer, err := a.c.call(http.MethodPost, "/v1/leases", `{"agent":"`+a.name+`","claims":[{"key":"`+key+`"}]}`)
	if status == http.StatusConflict {
		return nil, ErrHeld
	}
	return a.granted(status, answer, err)
}

// granted reads the lease's id. An answer is several hundred bytes of JSON and only the id is
// wanted, so it is looked for and not parsed.
func (a *httpAgent) granted(status int, answer []byte, err error) (Lock, error) {
	if err != nil {
		return nil, err
	}
	if _, rest, ok := bytes.Cut(answer, []byte(`"lease":{`)); ok && status == http.StatusOK {
		if _, rest, ok := bytes.Cut(rest, []byte(`"id":"`)); ok {
			if id, _, ok := bytes.Cut(rest, []byte(`"`)); ok {
				return httpLock{a.c, string(id)}, nil
			}
		}
	}
	return nil, unexpected(status, answer)
}

func unexpected(status int, answer []byte) error {
	return fmt.Errorf("the server answered %d: %s", status, bytes.TrimSpace(answer))
}

// caller speaks HTTP/1.1 on one connection, with next to no work of its own: what a
// caller costs is taken from the server, since they share the machine.
type caller struct {
	conn   net.Conn
	stop   func() bool
	r      *bufio.Reader
	header string
	out    []byte
	in     []byte // the last answer
}

func (c *caller) close() {
	c.stop()
	_ = c.conn.Close()
}

// call makes one call. The answer is good until the next one.
func (c *caller) call(method, path, body string) (status int, answer []byte, err error) {
	c.out = append(c.out[:0], method...)
	c.out = append(c.out, ' ')
	c.out = append(c.out, path...)
	c.out = append(c.out, " HTTP/1.1\r\n"...)
	c.out = append(c.out, c.header...)
	if body != "" {
		c.out = append(c.out, "Content-Type: application/json\r\nContent-Length: "...)
		c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
		c.out = append(c.out, "\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, nil, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, nil, fmt.Errorf("no answer of HTTP/1.1: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, err
	}
	length := -1
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return 0, nil, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, nil, err
			}
		}
	}
	if length < 0 {
		return 0, nil, fmt.Errorf("%s %s: an answer without its length", method, path)
	}
	if cap(c.in) < length {
		c.in = make([]byte, length)
	}
	c.in = c.in[:length]
	_, err = io.ReadFull(c.r, c.in)
	return status, c.in, err
}
