package redisjournal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// node is where the primary of one journal is, and what it waits for.
type node struct {
	mu       sync.Mutex // guards the fields below
	addr     string     // "" is unknown: one of the hosts
	replicas int        // that must have each write
}

// primary returns its address.
func (n *node) primary() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addr
}

// settle notes which server it is.
func (n *node) settle(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addr = addr
}

// wait returns how many replicas must have each write.
func (n *node) wait() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replicas
}

// raise notes that it is at least so many.
func (n *node) raise(replicas int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.replicas = max(n.replicas, replicas)
}

// seen notes what a server told of itself.
func (d *driver) seen(s *server) {
	if !d.fixed() {
		d.node.raise(min(s.majority(), mostReplicas))
	}
}

// connect takes a connection to the primary.
func (d *driver) connect(ctx context.Context) (*conn, error) {
	addr := d.node.primary()
	c, err := d.take(ctx, addr)
	if err != nil {
		d.node.settle("")
		return nil, err
	}
	if addr == "" {
		d.node.settle(c.addr)
	}
	d.seen(&c.server)
	return c, nil
}

// put returns a connection, and leaves a server that is no primary any more, or does not reach its replicas.
func (d *driver) put(c *conn, leave bool) {
	if leave {
		c.broken = true
		d.skip(c.addr)
	}
	if c.broken {
		d.node.settle("")
	}
	d.give(c)
}

// send sends commands without keys to the primary.
func (d *driver) send(ctx context.Context, commands ...command) ([]any, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	answers, err := c.do(ctx, commands...)
	d.put(c, false)
	if err != nil {
		err = fmt.Errorf("redis: %w", err)
	}
	return answers, err
}

// server asks the primary what it is.
func (d *driver) server(ctx context.Context) (now server, err error) {
	answers, err := d.send(ctx, command{"INFO"})
	if err != nil {
		return now, err
	}
	if r, refused := answers[0].(refusal); refused {
		return now, explain(r)
	}
	now = parseServer(text(answers[0]))
	d.seen(&now)
	return now, nil
}

// mostMoves bounds how often the nodes of a cluster may name another one.
const mostMoves = 5

// run carries a script out, and waits for replicas if it writes. The answer is nil if its comparison failed.
func (d *driver) run(ctx context.Context, s *script, args ...any) (any, error) {
	for range mostMoves {
		c, err := d.connect(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := d.runOn(ctx, c, s, args)
		r, refused := errors.AsType[refusal](err)
		short := errors.Is(err, errReplicas)
		d.put(c, short || refused && elsewhere(r))
		if refused && r.code() == codeMoved {
			if addr := moved(r, c.addr); addr != "" {
				d.node.settle(addr)
				continue
			}
		}
		return answer, err
	}
	return nil, errors.New("redis: the nodes of the cluster do not agree which has the journal")
}

// moved returns the address in a refusal of a node of a cluster, which may leave out its own host.
func moved(r refusal, from string) string {
	fields := strings.Fields(string(r))
	if len(fields) != 3 {
		return ""
	}
	host, port, err := net.SplitHostPort(fields[2])
	if err != nil {
		return ""
	}
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, port)
}

// errReplicas: a write was carried out, and not enough replicas have confirmed it. Its outcome is unknown.
var errReplicas = errors.New("too few replicas have confirmed a write")

func (d *driver) runOn(ctx context.Context, c *conn, s *script, args []any) (any, error) {
	if !c.server.least(7, 0) {
		return nil, d.old(c)
	}
	rest := append(append(command{}, d.keys...), args...)
	batch, replicas, end := []command{append(command{"EVALSHA", s.sha}, rest...)}, 0, waitEnd(ctx)
	if s.writes {
		replicas = d.node.wait()
	}
	if replicas > 0 {
		batch = append(batch, command{"WAIT", replicas, milliseconds(time.Until(end))})
	}
	answers, err := c.do(ctx, batch...)
	if r, refused := first(answers).(refusal); refused && r.code() == codeNoScript {
		batch[0] = append(command{"EVAL", s.text}, rest...)
		answers, err = c.do(ctx, batch...)
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if r, refused := answers[0].(refusal); refused {
		return nil, explain(r)
	}
	if replicas > 0 {
		if err := d.await(ctx, c, replicas, answers[1], end); err != nil {
			return nil, err
		}
	}
	return answers[0], nil
}

func first(answers []any) any {
	if len(answers) == 0 {
		return nil
	}
	return answers[0]
}

// Of the wait for replicas.
const (
	waitMargin = 150 * time.Millisecond // before an attempt ends: servers look at times ten times a second
	usualWait  = time.Second            // of an attempt without an end
	syncStep   = 100 * time.Millisecond // after which replicas are asked again what they have synced
)

// waitEnd is until when to wait.
func waitEnd(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(usualWait)
	}
	return end.Add(-waitMargin)
}

// milliseconds is a limit for a server, to which 0 is for ever.
func milliseconds(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// await waits until replicas have synced what the connection has written. answer is that of WAIT: how many have read
// it. Without WAIT before it WAITAOF could take a second: a replica that reads its question together with the write
// has not synced that yet, and reports it by itself later.
func (d *driver) await(ctx context.Context, c *conn, replicas int, answer any, end time.Time) error {
	short := func(n int64) error {
		return fmt.Errorf("redis: %w: %d of %d at %s", errReplicas, n, replicas, c.addr)
	}
	switch n := answer.(type) {
	case refusal:
		return explain(n)
	case int64:
		if n < int64(replicas) {
			return short(n)
		}
	default:
		return fmt.Errorf("redis: %w", errProtocol)
	}
	if d.at.AllowLoss || !c.server.syncs() {
		return nil
	}
	for {
		answer, err := c.one(ctx, command{"WAITAOF", 1, replicas, milliseconds(min(syncStep, time.Until(end)))})
		if err != nil {
			return err
		}
		n, err := synced(answer)
		if err != nil || n >= int64(replicas) {
			return err
		}
		if !time.Now().Before(end) {
			return short(n)
		}
	}
}

// one sends one command, and returns its answer or the refusal as an error.
func (c *conn) one(ctx context.Context, args command) (any, error) {
	answers, err := c.do(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if r, refused := answers[0].(refusal); refused {
		return nil, explain(r)
	}
	return answers[0], nil
}
