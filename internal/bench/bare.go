package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// A bare server is what a durable service costs that decides nothing: it reads what has
// arrived, syncs as many bytes to a file that has its blocks, and sends them back, all in one
// goroutine. The agents of a process share one connection to it, as those of a client do, and
// one that is alone sends and reads itself.

// messageSize is that of a request, and of its answer.
const messageSize = 64

// syncBytes is the bare server, for one connection after the other.
func syncBytes(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		err = syncEcho(conn)
		if _ = conn.Close(); err != nil {
			return err
		}
	}
}

// syncEcho serves one connection until the other side goes.
func syncEcho(conn net.Conn) (err error) {
	f, err := blocks(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Whole blocks are written, with the previous content behind the messages.
	in, have, at := make([]byte, 16*blockSize), 0, 0
	for {
		n, err := conn.Read(in[have:])
		if err != nil {
			return nil
		}
		have += n
		whole := have - have%messageSize
		size := (whole + blockSize - 1) / blockSize * blockSize
		if at+size > blockSize*fileBlocks {
			at = 0
		}
		if _, err := f.WriteAt(in[:size], int64(at)); err != nil {
			return err
		}
		if err := syncData(f); err != nil {
			return err
		}
		at += size
		if _, err := conn.Write(in[:whole]); err != nil {
			return nil
		}
		have = copy(in, in[whole:have])
	}
}

// bareCrew is agents that share a connection to a bare server.
type bareCrew struct {
	conn   net.Conn
	lost   context.CancelCauseFunc // ends the agents: the connection is gone
	wake   chan struct{}           // something is to be sent
	answer []chan struct{}         // of each agent
	ended  sync.WaitGroup

	mu  sync.Mutex // guards the fields below
	out []byte
}

// dialBare connects n agents to a bare server. If it goes away, lost gets the reason.
func dialBare(ctx context.Context, addr string, n int, lost context.CancelCauseFunc) (*bareCrew, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &bareCrew{conn: conn, lost: lost, wake: make(chan struct{}, 1), answer: make([]chan struct{}, n)}
	for i := range c.answer {
		c.answer[i] = make(chan struct{}, 1)
	}
	if n > 1 {
		c.ended.Go(c.send)
		c.ended.Go(c.receive)
	}
	return c, nil
}

// Close ends the crew. No agent asks any more.
func (c *bareCrew) Close() {
	_ = c.conn.Close()
	close(c.wake)
	c.ended.Wait()
}

// ask sends a message of an agent and waits for it to come back.
func (c *bareCrew) ask(ctx context.Context, agent int) error {
	var message [messageSize]byte
	binary.LittleEndian.PutUint32(message[:], uint32(agent))
	if len(c.answer) == 1 {
		if err := exchange(c.conn, message[:]); err != nil {
			return gone(err)
		}
		return nil
	}
	c.mu.Lock()
	c.out = append(c.out, message[:]...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	select {
	case <-c.answer[agent]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// gone reports what has become of the connection to a bare server.
func gone(err error) error { return fmt.Errorf("the bare server is gone: %w", err) }

// send sends what is there, all at once.
func (c *bareCrew) send() {
	var out []byte
	for range c.wake {
		c.mu.Lock()
		out, c.out = c.out, out[:0]
		c.mu.Unlock()
		if _, err := c.conn.Write(out); err != nil {
			c.lost(gone(err))
			return
		}
	}
}

// receive passes to the agents what has come back.
func (c *bareCrew) receive() {
	in, have := make([]byte, 16*blockSize), 0
	for {
		n, err := c.conn.Read(in[have:])
		if err != nil {
			c.lost(gone(err))
			return
		}
		have += n
		used := 0
		for ; have-used >= messageSize; used += messageSize {
			c.answer[binary.LittleEndian.Uint32(in[used:])] <- struct{}{}
		}
		have = copy(in, in[used:have])
	}
}

// bareCycles measures as many round trips to a bare server as a cycle has.
func bareCycles(ctx context.Context, addr string, n int, d time.Duration) ([]Value, error) {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	crew, err := dialBare(ctx, addr, n, lost)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	took, elapsed, err := drive(ctx, n, d, func(ctx context.Context, i int) error {
		if err := crew.ask(ctx, i); err != nil {
			return err
		}
		return crew.ask(ctx, i)
	})
	if err != nil {
		return nil, err
	}
	return append([]Value{rate("cycles", took.Count(), elapsed)}, quantiles(took)...), nil
}

// blocks makes a file with its blocks allocated; closing it removes it.
func blocks(flag int) (*os.File, error) {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	name := dir + "/floor"
	err = os.WriteFile(name, make([]byte, blockSize*fileBlocks), 0o600)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(name, os.O_WRONLY|flag, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return f, errors.Join(err, os.RemoveAll(dir))
}
