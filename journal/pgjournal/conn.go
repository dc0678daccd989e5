package pgjournal

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// mostIdle bounds the connections that are kept when nothing uses them. Each further shard adds one.
	mostIdle = 4
	// mostOpen bounds all of them, so that three servers fit into PostgreSQL's default of 100, however many shards
	// they have. What comes beyond waits for its turn.
	mostOpen = 30
)

// pool is the connections to a database. Each carries one statement at a time.
type pool struct {
	config *pgconn.Config
	turns  chan struct{} // has an element for each connection in use

	mu     sync.Mutex // guards the fields below
	idle   []*pgconn.PgConn
	most   int
	closed bool
}

func newPool(dsn string) (*pool, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if config.ValidateConnect == nil {
		// Of several hosts the one that takes writes is wanted.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return &pool{config: config, turns: make(chan struct{}, mostOpen), most: mostIdle}, nil
}

// share makes room for the connections of another shard.
func (p *pool) share() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = min(p.most+1, mostOpen)
}

// take returns a connection, which is the caller's until give.
func (p *pool) take(ctx context.Context) (*pgconn.PgConn, error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		<-p.turns
	}
	return c, err
}

// give takes a connection back after a statement. If it broke, or leads to a server that is no primary
// any more, so do the others, most likely.
func (p *pool) give(c *pgconn.PgConn, err error) {
	defer func() { <-p.turns }()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.IsClosed() || elsewhere(err):
		go hangUp(c)
		p.drop()
	case p.closed || len(p.idle) >= p.most:
		go hangUp(c)
	default:
		p.idle = append(p.idle, c)
	}
}

// drop needs mu.
func (p *pool) drop() {
	for _, c := range p.idle {
		go hangUp(c)
	}
	p.idle = nil
}

// hangUp ends a connection without waiting for the server.
func hangUp(c *pgconn.PgConn) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ended)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.drop()
}

// row is the columns of a row, in the text format.
type row [][]byte

func (r row) text(i int) string { return string(r[i]) }

// query carries one statement out, as one message with its parameters: no name of a statement and
// no state of the session is left behind. Parameters are strings, []byte or integers; values of the type
// bytea come in the binary format.
func (p *pool) query(ctx context.Context, sql string, binary []int16, parameters ...any) ([]row, error) {
	values, formats := make([][]byte, len(parameters)), make([]int16, len(parameters))
	for i, v := range parameters {
		values[i], formats[i] = encode(v)
	}
	c, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	got := c.ExecParams(ctx, sql, values, nil, formats, binary).Read()
	p.give(c, got.Err)
	rows := make([]row, len(got.Rows))
	for i := range got.Rows {
		rows[i] = got.Rows[i]
	}
	return rows, got.Err
}

// script carries several statements out as one transaction.
func (p *pool) script(ctx context.Context, sql string) error {
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql).ReadAll()
	p.give(c, err)
	return err
}
