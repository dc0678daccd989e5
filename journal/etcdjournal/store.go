package etcdjournal

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// formatNumber is the layout of the keys that this package knows.
const formatNumber = 1

// driver is one journal in a cluster.
type driver struct {
	client *clientv3.Client
	at     Place
	prefix string // of its keys
}

var _ remote.Driver = (*driver)(nil)

// Connect makes a store. It sends nothing yet, so it succeeds also when no member of
// the cluster can be reached.
func Connect(at Place) (*remote.Store, error) {
	security, err := at.security()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            at.Endpoints,
		TLS:                  security,
		DialKeepAliveTime:    10 * time.Second, // as often as gRPC permits
		DialKeepAliveTimeout: 2 * time.Second,
		BackoffWaitBetween:   50 * time.Millisecond,
		Logger:               zap.NewNop(), // failures are returned as errors
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return remote.New(&driver{client, at, at.prefix()}, at.Patience), nil
}

// Shard implements remote.Driver.
func (d *driver) Shard(n int) remote.Driver {
	at := d.at
	at.Shard = n
	return &driver{d.client, at, at.prefix()}
}

// Close implements remote.Driver.
func (d *driver) Close() error { return d.client.Close() }

// Place implements remote.Driver: every name is the end of a key.
func (d *driver) Place(name string) string { return d.key(name) }

func (d *driver) key(name string) string { return d.prefix + name }

// Head implements remote.Driver, and refuses the format of another version.
func (d *driver) Head(ctx context.Context) (h remote.Head, err error) {
	got, err := d.client.Txn(ctx).Then(clientv3.OpGet(d.key("format")), clientv3.OpGet(d.key("epoch")),
		clientv3.OpGet(d.key("tail")), clientv3.OpGet(d.key("copied"))).Commit()
	if err != nil {
		return h, explain(err)
	}
	format, epoch, tail, copied := valueOf(got, 0), valueOf(got, 1), valueOf(got, 2), valueOf(got, 3)
	switch {
	case format == "" && epoch == "" && tail == "":
		return h, nil
	case format != strconv.Itoa(formatNumber):
		if n, err := strconv.Atoi(format); err == nil && n > formatNumber {
			return h, fmt.Errorf(
				"%w: the format of %s is %d, and this version knows %d", journal.ErrNewer, d.prefix, n, formatNumber,
			)
		}
		return h, d.damaged("format", "it names no format")
	case epoch == "":
		return h, d.damaged("epoch", "it is missing")
	}
	h.Moved = copied != ""
	if h.Owner, err = remote.ParseOwner(epoch); err != nil {
		return h, d.damaged("epoch", err.Error())
	}
	if h.Tail, err = remote.ParsePosition(tail); err != nil {
		return h, d.damaged("tail", err.Error())
	}
	return h, nil
}

func (d *driver) damaged(key, reason string) error {
	return &journal.DamageError{File: d.key(key), Reason: reason}
}

// commit carries operations out if all conditions hold.
func (d *driver) commit(
	ctx context.Context, conditions []clientv3.Cmp, ops ...clientv3.Op,
) (revision string, done bool, err error) {
	got, err := d.client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err != nil {
		return "", false, explain(err)
	}
	return strconv.FormatInt(got.Header.Revision, 10), got.Succeeded, nil
}

// owned is the condition that an owner is the newest, in an empty store that there is none.
func (d *driver) owned(by remote.Owner) clientv3.Cmp { return is(d.key("epoch"), by.String()) }

// Fence implements remote.Driver.
func (d *driver) Fence(ctx context.Context, was, to remote.Owner, moved bool) (bool, error) {
	put := []clientv3.Op{clientv3.OpPut(d.key("epoch"), to.String())}
	if (was == remote.Owner{}) {
		put = append(put, clientv3.OpPut(d.key("format"), strconv.Itoa(formatNumber)))
	}
	if moved {
		put = append(put, clientv3.OpPut(d.key("copied"), "yes"))
	}
	_, done, err := d.commit(ctx, []clientv3.Cmp{d.owned(was)}, put...)
	return done, err
}

// Adopt implements remote.Driver.
func (d *driver) Adopt(ctx context.Context, by remote.Owner) (bool, error) {
	_, done, err := d.commit(ctx, []clientv3.Cmp{d.owned(by)}, clientv3.OpDelete(d.key("copied")))
	return done, err
}

// Found implements remote.Driver.
func (d *driver) Found(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (bool, error) {
	put := []clientv3.Op{
		clientv3.OpPut(d.key("format"), strconv.Itoa(formatNumber)),
		clientv3.OpPut(d.key("epoch"), h.Owner.String()),
		clientv3.OpPut(d.key("tail"), h.Tail.String()),
		clientv3.OpPut(d.key(name), string(data)),
	}
	if h.Moved {
		put = append(put, clientv3.OpPut(d.key("copied"), "yes"))
	}
	_, done, err := d.commit(ctx, []clientv3.Cmp{d.owned(was)}, put...)
	return done, err
}

// Confirm implements remote.Driver by one linearizable read.
func (d *driver) Confirm(ctx context.Context, by remote.Head) (bool, error) {
	got, err := d.client.Txn(ctx).Then(clientv3.OpGet(d.key("epoch")), clientv3.OpGet(d.key("tail"))).Commit()
	if err != nil {
		return false, explain(err)
	}
	now, err := remote.ParsePosition(valueOf(got, 1))
	if err != nil {
		return false, d.damaged("tail", err.Error())
	}
	return valueOf(got, 0) == by.Owner.String() && now.Index >= by.Tail.Index, nil
}

// Get implements remote.Driver.
func (d *driver) Get(ctx context.Context, name string) (v remote.Value, err error) {
	got, err := d.client.Get(ctx, d.key(name))
	if err != nil || len(got.Kvs) == 0 {
		return v, explain(err)
	}
	return remote.Value{Data: got.Kvs[0].Value, Version: strconv.FormatInt(got.Kvs[0].ModRevision, 10)}, nil
}

// Put implements remote.Driver. The version of a value is the revision of etcd that it was written at.
func (d *driver) Put(
	ctx context.Context, by remote.Head, name string, data []byte, was string,
) (version string, done bool, err error) {
	conditions := []clientv3.Cmp{d.owned(by.Owner)}
	if was != remote.AnyVersion {
		conditions = append(conditions, d.unchanged(name, was))
	}
	return d.commit(ctx, conditions, clientv3.OpPut(d.key(name), string(data)))
}

// Swap implements remote.Driver.
func (d *driver) Swap(
	ctx context.Context, name string, data []byte, was string,
) (version string, done bool, err error) {
	return d.commit(ctx, []clientv3.Cmp{d.unchanged(name, was)}, clientv3.OpPut(d.key(name), string(data)))
}

// unchanged is the condition that a value still has a version.
func (d *driver) unchanged(name, version string) clientv3.Cmp {
	revision, _ := strconv.ParseInt(version, 10, 64) // 0 where there is no value
	return clientv3.Compare(clientv3.ModRevision(d.key(name)), "=", revision)
}

// Remove implements remote.Driver.
func (d *driver) Remove(ctx context.Context, by remote.Head, from, to string) (bool, error) {
	_, done, err := d.commit(
		ctx, []clientv3.Cmp{d.owned(by.Owner)}, clientv3.OpDelete(d.key(from), clientv3.WithRange(d.key(to))),
	)
	return done, err
}

// valueOf returns the value that the i-th operation of a transaction has read; "" if there is
// none.
func valueOf(got *clientv3.TxnResponse, i int) string {
	kvs := got.Responses[i].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return ""
	}
	return string(kvs[0].Value)
}

// is compares a key with what it is known to hold; "" means that there is none.
func is(key, value string) clientv3.Cmp {
	if value == "" {
		return clientv3.Compare(clientv3.Version(key), "=", 0)
	}
	return clientv3.Compare(clientv3.Value(key), "=", value)
}
