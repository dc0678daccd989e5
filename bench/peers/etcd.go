package main

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/interlockdev/interlock/internal/bench"
)

// etcdCrew are agents with a session each, on one connection or on one each.
func etcdCrew(own bool) func(context.Context, string, int) (*bench.Crew, error) {
	return func(ctx context.Context, addr string, n int) (*bench.Crew, error) {
		clients := make([]*clientv3.Client, 1)
		if own {
			clients = make([]*clientv3.Client, n)
		}
		crew := &bench.Crew{Agents: make([]bench.Agent, n), Close: func() { // the sessions end with the server
			for _, c := range clients {
				if c != nil {
					_ = c.Close()
				}
			}
		}}
		err := each(len(clients), func(i int) (err error) {
			clients[i], err = clientv3.New(clientv3.Config{
				Endpoints: []string{addr}, DialTimeout: patience, Logger: zap.NewNop(),
			})
			return err
		})
		if err == nil {
			err = each(n, func(i int) (err error) {
				crew.Agents[i], err = newEtcdAgent(ctx, clients[i%len(clients)])
				return err
			})
		}
		if err != nil {
			crew.Close()
			return nil, err
		}
		return crew, nil
	}
}

type etcdAgent struct {
	session *concurrency.Session
	witness *etcdWitness
}

func newEtcdAgent(ctx context.Context, c *clientv3.Client) (*etcdAgent, error) {
	w := &etcdWitness{KV: c}
	own := clientv3.NewCtxClient(ctx, clientv3.WithZapLogger(zap.NewNop()))
	own.KV, own.Lease, own.Watcher = w, c, c
	s, err := concurrency.NewSession(own, concurrency.WithTTL(int(ttl/time.Second)))
	return &etcdAgent{s, w}, err
}

// Acquire implements bench.Agent.
func (a *etcdAgent) Acquire(ctx context.Context, key string, queued func()) (bench.Lock, error) {
	a.witness.queued = queued
	m := concurrency.NewMutex(a.session, key)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return etcdLock{m}, nil
}

// Try implements bench.Agent.
func (a *etcdAgent) Try(ctx context.Context, key string) (bench.Lock, error) {
	a.witness.queued = nil
	m := concurrency.NewMutex(a.session, key)
	err := m.TryLock(ctx)
	if errors.Is(err, concurrency.ErrLocked) {
		return nil, bench.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return etcdLock{m}, nil
}

type etcdLock struct{ m *concurrency.Mutex }

// Release implements bench.Lock.
func (l etcdLock) Release(ctx context.Context) error { return l.m.Unlock(ctx) }

// etcdWitness reports when an agent stands in line: its mutex writes a key of its own and reads
// the oldest one in the same transaction, which then belongs to another agent.
type etcdWitness struct {
	clientv3.KV
	queued func()
}

// Txn implements clientv3.KV.
func (w *etcdWitness) Txn(ctx context.Context) clientv3.Txn { return etcdTxn{w.KV.Txn(ctx), w} }

type etcdTxn struct {
	clientv3.Txn
	w *etcdWitness
}

func (t etcdTxn) If(c ...clientv3.Cmp) clientv3.Txn  { return etcdTxn{t.Txn.If(c...), t.w} }
func (t etcdTxn) Then(o ...clientv3.Op) clientv3.Txn { return etcdTxn{t.Txn.Then(o...), t.w} }
func (t etcdTxn) Else(o ...clientv3.Op) clientv3.Txn { return etcdTxn{t.Txn.Else(o...), t.w} }

func (t etcdTxn) Commit() (*clientv3.TxnResponse, error) {
	res, err := t.Txn.Commit()
	if err == nil && res.Succeeded && t.w.queued != nil {
		oldest := res.Responses[1].GetResponseRange().Kvs
		if len(oldest) > 0 && oldest[0].CreateRevision != res.Header.Revision {
			t.w.queued()
		}
	}
	return res, err
}
