package resp

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
	"github.com/interlockdev/interlock/server"
)

// client is one connection.
type client struct {
	door      *Server
	raw, conn net.Conn // with and without TLS
	ctx       context.Context
	id        int64
	w         writer

	in   []byte // read, from the first command that was not carried out
	room []byte // what in is a part of
	held int    // bytes of room that the server counts

	name, library, libraryVersion string
	user, bearer, namespace       string
	shown                         string         // the name that others see; "" until it is needed
	caller                        *server.Caller // nil until a command needs one
	from                          string         // its address, as the server that relays it has named it
	admitted                      bool
	forwarded                     bool      // by another server
	over                          bool      // after this answer
	broken                        bool      // by an internal error
	floods                        bool      // more has come than an idle connection has room for
	begun, hurries                bool      // a command has begun to come; a deadline for one is set
	patient                       time.Time // the deadline for sending answers
}

const (
	// idleBytes are what a connection keeps to read into while it waits.
	idleBytes = 512
	// floodBytes are what it keeps while more comes than that. The server does not count them.
	floodBytes = 8 * idleBytes
	// fullAnswers is how many bytes of answers are collected before they are sent.
	fullAnswers = 16 << 10
)

// serve carries out the commands of the connection until it ends.
func (c *client) serve() {
	defer c.door.leave(c)
	defer func() {
		c.count(-c.held)
		_ = c.conn.Close()
	}()
	defer c.recover()
	if !c.greet() {
		return
	}
	for !c.over && !c.broken {
		args, n, want, err := parse(c.in, c.limits())
		switch {
		case err != nil:
			c.protocolError(err)
			return
		case n == 0:
			if !c.flush() || c.door.draining.Load() || !c.read(want) {
				return
			}
		default:
			if len(args) > 0 {
				if c.door.cfg.Dial != nil && c.relay(string(upper(nil, args[0]))) {
					return
				}
				var list [][][]byte
				list, n = c.together(args, n)
				c.carryOut(list)
			}
			c.in, c.begun = c.in[n:], false
			if len(c.w.b) >= fullAnswers && !c.flush() {
				return
			}
		}
	}
	c.flush()
}

// recover ends a connection with a command that failed because of an internal error.
func (c *client) recover() {
	if why := recover(); why != nil {
		c.broken = true
		c.door.cfg.Log.Error("a command failed because of an internal error", "panic", why, "stack", string(debug.Stack()))
	}
}

// greet makes the connection of a client with TLS.
func (c *client) greet() bool {
	t, ok := c.conn.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.door.cfg.Greeting)
	defer cancel()
	return t.HandshakeContext(ctx) == nil
}

func (c *client) limits() limits {
	if c.admitted {
		return knownLimits
	}
	return strangerLimits
}

func (c *client) protocolError(err error) {
	c.w.fail("ERR Protocol error: " + invisible.Line(err.Error()))
	c.flush()
}

// read reads more of a command that will have at least want bytes. While nothing of it has come the client
// may take any time, and then it has one deadline for all of it. So a client that is idle costs a small buffer.
func (c *client) read(want int) bool {
	if len(c.in) == 0 {
		size, most := idleBytes, 4*idleBytes
		if c.floods {
			size, most = floodBytes, floodBytes
		}
		if len(c.room) < size || len(c.room) > most {
			c.count(-c.held)
			c.room = make([]byte, size)
		}
		c.in = c.room[:0]
		if c.hurries && !c.deadline(time.Time{}) {
			return false
		}
		c.hurries = false
	} else {
		if !c.begun && !c.deadline(time.Now().Add(c.door.cfg.Greeting)) {
			return false
		}
		c.begun, c.hurries = true, true
		if want = max(want, len(c.in)+1); want > cap(c.in) {
			// Room for the bytes that have come and as many again, not for those announced.
			size := min(max(want, 2*idleBytes), 4*max(len(c.in), idleBytes))
			if size > len(c.room) {
				if !c.count(size - c.held) {
					c.w.fail(errorLine(&interlock.Error{
						Code:    interlock.CodeOverloaded,
						Message: "the requests of this namespace in flight have reached their memory limit",
					}))
					c.flush()
					return false
				}
				room := make([]byte, size)
				c.in = room[:copy(room, c.in)]
				c.room = room
			} else {
				c.in = c.room[:copy(c.room, c.in)]
			}
		}
	}
	n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	c.floods = len(c.in) >= idleBytes
	return n > 0 || err == nil
}

// deadline sets the time until which a command must have come. The end of the door comes first.
func (c *client) deadline(t time.Time) bool {
	if c.raw.SetReadDeadline(t) != nil {
		return false
	}
	if c.door.draining.Load() {
		_ = c.raw.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

// count has the server count n more bytes of buffers, beyond a small one, and reports whether there was room.
func (c *client) count(n int) bool {
	if c.caller == nil || n > 0 && c.held+n <= floodBytes {
		return true
	}
	if !c.caller.Carry(n) {
		return false
	}
	c.held += n
	return true
}

// flush sends the answers. A client that does not read them is cut off.
func (c *client) flush() bool {
	if len(c.w.b) == 0 {
		return true
	}
	if now := time.Now(); c.patient.Sub(now) < c.door.cfg.Patience/2 { // a deadline costs more than a look at the clock
		c.patient = now.Add(c.door.cfg.Patience)
		_ = c.raw.SetWriteDeadline(c.patient)
	}
	_, err := c.conn.Write(c.w.b)
	if c.w.b = c.w.b[:0]; cap(c.w.b) > 4*idleBytes {
		c.w.b = nil
	}
	return err == nil
}

// identify finds the caller of a command that the server carries out.
func (c *client) identify() (err error) {
	api := c.door.cfg.API()
	if c.caller == nil {
		if c.caller, err = api.Caller(c.bearer, c.namespace); err != nil {
			c.caller = nil
			return err
		}
	} else {
		next, err := c.caller.On(api)
		if err != nil {
			return err
		}
		if next != c.caller {
			c.caller, c.held = next, 0
		}
	}
	if !c.admitted {
		c.admitted = true
		c.caller.Admit(c.raw)
	}
	return nil
}

// agent returns the name of the client that others see.
func (c *client) agent() string {
	if c.shown == "" {
		place := c.host()
		if c.library != "" {
			place = c.library + "@" + place
		}
		name := invisible.Line("redis:" + cmp.Or(c.name, c.user, place))
		c.shown = strings.ToValidUTF8(name[:min(len(name), interlock.MaxNameBytes)], "")
	}
	return c.shown
}

// host returns the address of the client without its port, which differs between the connections of a pool.
func (c *client) host() string {
	address := cmp.Or(c.from, c.raw.RemoteAddr().String())
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// owner names those that may delete a key without its value: the connections with one credential and one user and name,
// or without both those of one library on one host.
func (c *client) owner() string {
	switch {
	case c.door.cfg.Test:
		return anyOwner
	case c.user != "" || c.name != "":
		return fmt.Sprintf("%q as %q, %q", c.caller.Name(), c.user, c.name)
	}
	return fmt.Sprintf("%q from %q, %q", c.caller.Name(), c.host(), c.library)
}

// nameOf names a key in the table of grants.
func (c *client) nameOf(key string) string { return nameOf(c.caller.Namespace(), key) }
