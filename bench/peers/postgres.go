package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlockdev/interlock/internal/bench"
)

// waiting is a function that takes a lock and reports when it has to wait for it: a notice is
// sent at once, while pg_advisory_lock reports nothing until it has the lock.
const waiting = `CREATE OR REPLACE FUNCTION take(key bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF NOT pg_try_advisory_lock(key) THEN
		RAISE NOTICE 'waiting';
		PERFORM pg_advisory_lock(key);
	END IF;
END $$`

// postgresCrew are agents with a connection each: an advisory lock belongs to one.
func postgresCrew(ctx context.Context, addr string, n int) (*bench.Crew, error) {
	agents := make([]*postgresAgent, n)
	crew := &bench.Crew{Agents: make([]bench.Agent, n), Close: func() {
		_ = each(n, func(i int) error {
			if agents[i] == nil {
				return nil
			}
			return agents[i].c.Close(context.WithoutCancel(ctx))
		})
	}}
	dial := func(i int) (err error) {
		agents[i], err = newPostgresAgent(ctx, addr)
		crew.Agents[i] = agents[i]
		return err
	}
	err := dial(0)
	if err == nil {
		_, err = agents[0].c.Exec(ctx, waiting)
	}
	if err == nil {
		err = each(n-1, func(i int) error { return dial(i + 1) })
	}
	if err != nil {
		crew.Close()
		return nil, err
	}
	return crew, nil
}

type postgresAgent struct {
	c      *pgx.Conn
	queued func()
}

func newPostgresAgent(ctx context.Context, addr string) (*postgresAgent, error) {
	cfg, err := pgx.ParseConfig(addr)
	if err != nil {
		return nil, err
	}
	a := &postgresAgent{}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if a.queued != nil && n.Message == "waiting" {
			a.queued()
		}
	}
	if a.c, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return a, nil
}

// Acquire implements bench.Agent.
func (a *postgresAgent) Acquire(ctx context.Context, key string, queued func()) (bench.Lock, error) {
	statement := "SELECT pg_advisory_lock($1)"
	if queued != nil {
		statement = "SELECT take($1)"
	}
	a.queued = queued
	_, err := a.c.Exec(ctx, statement, number(key))
	a.queued = nil
	if err != nil {
		return nil, err
	}
	return postgresLock{a.c, number(key)}, nil
}

// Try implements bench.Agent.
func (a *postgresAgent) Try(ctx context.Context, key string) (bench.Lock, error) {
	var taken bool
	if err := a.c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", number(key)).Scan(&taken); err != nil {
		return nil, err
	}
	if !taken {
		return nil, bench.ErrHeld
	}
	return postgresLock{a.c, number(key)}, nil
}

// number returns PostgreSQL's number for a key. Two keys may have the same one.
func number(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int64(h.Sum64())
}

type postgresLock struct {
	c   *pgx.Conn
	key int64
}

// Release implements bench.Lock.
func (l postgresLock) Release(ctx context.Context) error {
	var held bool
	err := l.c.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", l.key).Scan(&held)
	if err == nil && !held {
		err = errors.New("the lock was not held")
	}
	return err
}
