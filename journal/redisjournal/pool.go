package redisjournal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// mostIdle bounds the connections to one server that are kept when nothing uses them. Each further shard adds one.
const mostIdle = 4

// pool is the connections to servers, which all shards of a journal use.
type pool struct {
	at       Place
	security *tls.Config
	password string

	mu     sync.Mutex         // guards the fields below
	idle   map[string][]*conn // by address
	most   int
	closed bool
	next   int // which host is tried first
}

func newPool(at Place) (*pool, error) {
	if len(at.Hosts) == 0 {
		return nil, errForm
	}
	security, err := at.security()
	if err != nil {
		return nil, err
	}
	return &pool{
		at: at, security: security, password: os.Getenv(PasswordVariable), idle: map[string][]*conn{}, most: mostIdle,
	}, nil
}

// share makes room for the connections of another shard.
func (p *pool) share() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most++
}

// take returns a connection to a server, or to the primary among the hosts if addr is "".
func (p *pool) take(ctx context.Context, addr string) (*conn, error) {
	if addr != "" {
		p.mu.Lock()
		if list := p.idle[addr]; len(list) > 0 {
			c := list[len(list)-1]
			p.idle[addr] = list[:len(list)-1]
			p.mu.Unlock()
			return c, nil
		}
		p.mu.Unlock()
		return p.login(ctx, addr)
	}
	p.mu.Lock()
	first := p.next
	p.mu.Unlock()
	var refused []error
	for i := range p.at.Hosts {
		c, err := p.login(ctx, p.at.Hosts[(first+i)%len(p.at.Hosts)])
		if err == nil {
			return c, nil
		}
		refused = append(refused, err)
		if ctx.Err() != nil {
			p.skip(p.at.Hosts[(first+i)%len(p.at.Hosts)])
			break
		}
	}
	return nil, errors.Join(refused...)
}

// skip lets the next search for a primary begin behind a host, which takes up a whole attempt.
func (p *pool) skip(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.at.Hosts, addr); i >= 0 {
		p.next = (i + 1) % len(p.at.Hosts)
	}
}

// login connects to a primary.
func (p *pool) login(ctx context.Context, addr string) (*conn, error) {
	c, err := dial(ctx, addr, p.security)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if err := p.greet(ctx, c); err != nil {
		c.Close()
		return nil, fmt.Errorf("%w (%s)", err, addr)
	}
	return c, nil
}

func (p *pool) greet(ctx context.Context, c *conn) error {
	var commands []command
	switch {
	case p.at.User != "":
		commands = append(commands, command{"AUTH", p.at.User, p.password})
	case p.password != "":
		commands = append(commands, command{"AUTH", p.password})
	}
	if p.at.Database != 0 {
		commands = append(commands, command{"SELECT", p.at.Database})
	}
	commands = append(commands, command{"INFO"})
	answers, err := c.do(ctx, commands...)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	for _, answer := range answers {
		if r, refused := answer.(refusal); refused {
			if r.code() == "NOAUTH" {
				r += ": set " + PasswordVariable
			}
			return explain(r)
		}
	}
	if c.server = parseServer(text(answers[len(answers)-1])); !c.server.primary {
		return errReplica
	}
	return nil
}

// give takes a connection back after a batch of commands. If it broke, so did the others to this server, most likely.
func (p *pool) give(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.broken:
		c.Close()
		p.drop(c.addr)
	case p.closed || len(p.idle[c.addr]) >= p.most:
		c.Close()
	default:
		p.idle[c.addr] = append(p.idle[c.addr], c)
	}
}

// drop needs mu.
func (p *pool) drop(addr string) {
	for _, c := range p.idle[addr] {
		c.Close()
	}
	delete(p.idle, addr)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for addr := range p.idle {
		p.drop(addr)
	}
}
