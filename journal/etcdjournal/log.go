package etcdjournal

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// dropAtOnce bounds the appends that one transaction deletes, because nothing else
// is carried out in the cluster meanwhile.
const dropAtOnce = 1000

// logKey returns the key of the append that has its last entry at index.
func (d *driver) logKey(index interlock.Index) string {
	return fmt.Sprintf("%slog/%020d", d.prefix, index)
}

// logEnd is above all keys of appends.
func (d *driver) logEnd() string { return d.prefix + "log0" }

// logIndex is the index in the key of an append.
func (d *driver) logIndex(key []byte) (interlock.Index, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(key), d.prefix+"log/"), 10, 64)
	if err != nil || d.logKey(interlock.Index(n)) != string(key) {
		return 0, &journal.DamageError{File: string(key), Reason: "the key names no index"}
	}
	return interlock.Index(n), nil
}

// Append implements remote.Driver.
func (d *driver) Append(
	ctx context.Context, by remote.Owner, after, next remote.Position, frame []byte,
) (bool, error) {
	_, done, err := d.commit(
		ctx, []clientv3.Cmp{d.owned(by), is(d.key("tail"), after.String())},
		clientv3.OpPut(d.logKey(next.Index), string(frame)), clientv3.OpPut(d.key("tail"), next.String()),
	)
	return done, err
}

// Frames implements remote.Driver.
func (d *driver) Frames(ctx context.Context, from interlock.Index, limit int) (list []remote.Frame, err error) {
	got, err := d.client.Get(ctx, d.logKey(from), clientv3.WithRange(d.logEnd()), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, explain(err)
	}
	for _, kv := range got.Kvs {
		last, err := d.logIndex(kv.Key)
		if err != nil {
			return nil, err
		}
		list = append(list, remote.Frame{Name: string(kv.Key), Last: last, Data: kv.Value})
	}
	return list, nil
}

// Drop implements remote.Driver. Deleted appends take room in etcd until it is compacted.
func (d *driver) Drop(
	ctx context.Context, by remote.Head, before interlock.Index,
) (dropped interlock.Index, done bool, err error) {
	got, err := d.client.Get(
		ctx, d.logKey(0), clientv3.WithRange(d.logKey(before)), clientv3.WithKeysOnly(), clientv3.WithLimit(dropAtOnce),
	)
	if err != nil || len(got.Kvs) == 0 {
		return 0, false, explain(err)
	}
	last, err := d.logIndex(got.Kvs[len(got.Kvs)-1].Key)
	if err != nil {
		return 0, false, err
	}
	_, done, err = d.commit(
		ctx, []clientv3.Cmp{d.owned(by.Owner)}, clientv3.OpDelete(d.logKey(0), clientv3.WithRange(d.logKey(last+1))),
	)
	return last, done, err
}
