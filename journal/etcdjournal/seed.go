package etcdjournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// ErrNotEmpty: the store has been written to already.
var ErrNotEmpty = errors.New("etcd: there is a journal already")

// Seed makes an empty store go on from a state that was written elsewhere: after index at, of
// epoch, as a snapshot. It is carried out as a whole or not at all, and may be repeated. The
// first to open the store finds it to be a copy.
func (s *Store) Seed(
	ctx context.Context, epoch interlock.Epoch, at interlock.Index, write func(io.Writer) error,
) error {
	if at == 0 || epoch == 0 {
		return fmt.Errorf("%w: a state after no entry", journal.ErrMisuse)
	}
	n := snapshot{index: at, epoch: epoch}
	folder := s.folder(&n)
	if err := n.fill(write, func(i int, chunk []byte) error {
		return s.onlyIfEmpty(ctx, "", clientv3.OpPut(chunkKey(folder, i), string(chunk)))
	}); err != nil {
		return err
	}
	epochText := fmt.Sprintf("%d seed-%08x", uint64(epoch), n.crc)
	return s.onlyIfEmpty(ctx, epochText,
		clientv3.OpPut(s.key("format"), strconv.Itoa(formatNumber)),
		clientv3.OpPut(s.key("epoch"), epochText),
		clientv3.OpPut(s.key("tail"), position{index: at}.String()),
		clientv3.OpPut(s.key("state"), n.String()),
		clientv3.OpPut(s.key("copied"), "yes"))
}

// onlyIfEmpty carries operations out unless there is a journal. epochText is what they make of
// the epoch, so that a repetition is distinguished from another journal.
func (s *Store) onlyIfEmpty(ctx context.Context, epochText string, ops ...clientv3.Op) error {
	var got *clientv3.TxnResponse
	_, err := s.attempts(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Txn(ctx).If(is(s.key("epoch"), "")).Then(ops...).Else(clientv3.OpGet(s.key("epoch"))).Commit()
		return err
	})
	switch {
	case err != nil:
		return unreachable(err)
	case !got.Succeeded && valueOf(got, 0) != epochText:
		return ErrNotEmpty
	}
	return nil
}
