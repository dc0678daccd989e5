package etcdjournal

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// truncateAtOnce bounds the appends that one transaction deletes, because nothing else
// is carried out in the cluster meanwhile.
const truncateAtOnce = 1000

// Truncate implements journal.Journal. It deletes appends that lie below before as a whole, and
// never the last one. Deleted appends take room in etcd until it is compacted.
func (j *Journal) Truncate(ctx context.Context, before interlock.Index) error {
	if err := j.begin(); err != nil {
		return err
	}
	defer j.calls.Done()
	s := j.store
	snapshot, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if before > snapshot.index+1 {
		if err := j.stillOwner(ctx); err != nil {
			return err
		}
		return fmt.Errorf("%w: truncate before %d, the snapshot is at %d", journal.ErrMisuse, before, snapshot.index)
	}
	end := s.logKey(min(before, j.Tail()))
	for {
		var got *clientv3.GetResponse
		err := s.read(ctx, func(ctx context.Context) (err error) {
			got, err = s.client.Get(
				ctx, s.logKey(0), clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(truncateAtOnce),
			)
			return err
		})
		if err != nil {
			return fmt.Errorf("%w: reading what to truncate: %w", journal.ErrFailed, err)
		}
		if len(got.Kvs) == 0 {
			return j.stillOwner(ctx) // the law guards every call, also one that has nothing to do
		}
		last, err := s.logIndex(got.Kvs[len(got.Kvs)-1].Key)
		if err != nil {
			return err
		}
		if err := j.guarded(ctx, clientv3.OpDelete(s.logKey(0), clientv3.WithRange(s.logKey(last+1)))); err != nil {
			return err
		}
		j.mu.Lock()
		j.first = max(j.first, last+1)
		j.mu.Unlock()
		if !got.More {
			return nil
		}
	}
}

// stillOwner is the guard of a call that changes nothing.
func (j *Journal) stillOwner(ctx context.Context) error {
	return j.guarded(ctx, clientv3.OpGet(j.store.key("epoch")))
}
