package etcdjournal

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock/journal/remote"
)

// applicant takes the seat, which is a key bound to a lease of etcd.
type applicant struct {
	*driver
	me    string // the value of the key
	ttl   time.Duration
	lease clientv3.LeaseID
	sits  bool // the key was bound to the lease
}

// Seat implements remote.Driver. ttl is a whole number of seconds, at least 2.
func (d *driver) Seat(me string, ttl time.Duration) remote.Applicant {
	return &applicant{driver: d, me: me, ttl: ttl}
}

// Sit implements remote.Applicant.
func (a *applicant) Sit(ctx context.Context) (holder string, err error) {
	if a.sits {
		_, err := a.client.KeepAliveOnce(ctx, a.lease)
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return a.me, explain(err)
		}
		a.lease, a.sits = clientv3.NoLease, false
	}
	v, err := a.Get(ctx, "active")
	if err != nil || v.Version != "" {
		return string(v.Data), err
	}
	if a.lease == clientv3.NoLease {
		// A grant with a lost answer leaves a lease that ends by itself.
		got, err := a.client.Grant(ctx, int64(a.ttl/time.Second))
		if err != nil {
			return "", explain(err)
		}
		a.lease = got.ID
	}
	got, err := a.client.Txn(ctx).If(is(a.key("active"), "")).
		Then(clientv3.OpPut(a.key("active"), a.me, clientv3.WithLease(a.lease))).
		Else(clientv3.OpGet(a.key("active"))).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		a.lease = clientv3.NoLease // it ended meanwhile
		return "", nil
	case err != nil:
		return "", explain(err)
	case got.Succeeded:
		holder = a.me
	default:
		holder = valueOf(got, 0)
	}
	a.sits = holder == a.me
	return holder, nil
}

// Rise implements remote.Applicant.
func (a *applicant) Rise(ctx context.Context) error {
	if a.lease == clientv3.NoLease {
		return nil
	}
	_, err := a.client.Revoke(ctx, a.lease)
	return explain(err)
}
