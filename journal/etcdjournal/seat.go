package etcdjournal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Holder is the holder of the seat, as it wants to be found.
type Holder struct {
	HTTP string `json:"http"` // a URL
	GRPC string `json:"grpc"` // host:port
	// Word distinguishes two holders with the same addresses.
	Word string `json:"word"`
}

// Seat decides which of several servers tries to be the owner of the journal. It is a key bound
// to a lease of etcd, which its holder renews: when the holder dies, or is cut off, the seat is
// free after the lease's time. It keeps servers from fencing each other in turn, and nothing
// else: what must not happen twice is decided by the journal's epoch.
type Seat struct {
	store  *Store
	me     string // the value of the key
	ttl    time.Duration
	lease  clientv3.LeaseID
	cancel context.CancelFunc
	done   chan struct{}
	lost   chan struct{}
}

// DefaultSeatTTL is after how long without a word from its holder the seat is free.
const DefaultSeatTTL = 4 * time.Second

// Renewals and looks at the seat, in parts of its time.
const (
	renewals = 4
	looks    = 8
)

// Take waits until the seat is free and takes it, or until ctx ends. Meanwhile it passes the
// seat's holder to seen, whenever that is another one than before, and the error that keeps it
// from finding out to failed. ttl is a whole number of seconds, at least 2; 0 means
// DefaultSeatTTL.
func (s *Store) Take(
	ctx context.Context, me Holder, ttl time.Duration, seen func(Holder), failed func(error),
) (*Seat, error) {
	if ttl == 0 {
		ttl = DefaultSeatTTL
	}
	me.Word = rand.Text()
	text, err := json.Marshal(me)
	if err != nil {
		return nil, err
	}
	seat := &Seat{store: s, me: string(text), ttl: ttl, done: make(chan struct{}), lost: make(chan struct{})}
	known := ""
	for {
		holder, err := seat.sit(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			failed(unreachable(err))
		case holder == seat.me:
			renewing, cancel := context.WithCancel(context.Background())
			seat.cancel = cancel
			go seat.hold(renewing)
			return seat, nil
		case err == nil && holder != known:
			known = holder
			var other Holder
			if json.Unmarshal([]byte(holder), &other) == nil {
				seen(other)
			}
		}
		if !pause(ctx, ttl/looks) {
			return nil, ctx.Err()
		}
	}
}

// sit takes the seat if it is free, and returns the value of its key afterwards.
func (t *Seat) sit(ctx context.Context) (holder string, err error) {
	s := t.store
	if holder, err = s.value(ctx, "active"); err != nil || holder != "" {
		return holder, err
	}
	if t.lease == clientv3.NoLease {
		// A grant with a lost answer leaves a lease that ends by itself.
		err = s.read(ctx, func(ctx context.Context) error {
			got, err := s.client.Grant(ctx, int64(t.ttl/time.Second))
			if err == nil {
				t.lease = got.ID
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	var got *clientv3.TxnResponse
	_, err = s.attempts(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Txn(ctx).If(is(s.key("active"), "")).
			Then(clientv3.OpPut(s.key("active"), t.me, clientv3.WithLease(t.lease))).
			Else(clientv3.OpGet(s.key("active"))).Commit()
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		t.lease = clientv3.NoLease // it ended meanwhile
		return "", nil
	case err != nil:
		return "", err
	case got.Succeeded:
		return t.me, nil
	}
	return valueOf(got, 0), nil
}

// hold renews the lease until another server holds the seat or renewing ends. When the seat is
// free all the same, because etcd could not be reached for so long, it is taken again.
func (t *Seat) hold(ctx context.Context) {
	defer close(t.done)
	s := t.store
	for pause(ctx, t.ttl/renewals) {
		limit, cancel := context.WithTimeout(ctx, t.ttl/renewals)
		_, err := s.client.KeepAliveOnce(limit, t.lease)
		cancel()
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			continue
		}
		t.lease = clientv3.NoLease
		if holder, err := t.sit(ctx); err == nil && holder != "" && holder != t.me {
			close(t.lost)
			return
		}
	}
}

// Lost is closed when another server holds the seat.
func (t *Seat) Lost() <-chan struct{} { return t.lost }

// Leave frees the seat, so that another one need not wait until its time is over.
func (t *Seat) Leave(ctx context.Context) {
	t.cancel()
	<-t.done
	if t.lease != clientv3.NoLease {
		_ = t.store.read(ctx, func(ctx context.Context) error {
			_, err := t.store.client.Revoke(ctx, t.lease)
			return err
		})
	}
}

// value reads one key; "" when there is none.
func (s *Store) value(ctx context.Context, name string) (value string, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		got, err := s.client.Get(ctx, s.key(name))
		if err == nil && len(got.Kvs) > 0 {
			value = string(got.Kvs[0].Value)
		}
		return err
	})
	return value, err
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
