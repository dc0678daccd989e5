package etcdjournal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// formatNumber is the layout of the keys that this package knows.
const formatNumber = 1

// Store is one journal in a cluster, with any owner. Its methods may be called by any number of
// goroutines.
type Store struct {
	client   *clientv3.Client
	prefix   string
	patience time.Duration
}

// Connect makes a store. It sends nothing yet, so it succeeds also when no member of
// the cluster can be reached.
func Connect(at Place) (*Store, error) {
	security, err := at.security()
	if err != nil {
		return nil, err
	}
	if at.Patience <= 0 {
		at.Patience = defaultPatience
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
	return &Store{client: client, prefix: at.prefix(), patience: at.Patience}, nil
}

// Close ends the connections. Journals of the store must be closed before.
func (s *Store) Close() error { return s.client.Close() }

func (s *Store) key(name string) string { return s.prefix + name }

// logKey returns the key of the append that has its last entry at index.
func (s *Store) logKey(index interlock.Index) string {
	return fmt.Sprintf("%slog/%020d", s.prefix, index)
}

// logEnd is above all keys of appends.
func (s *Store) logEnd() string { return s.prefix + "log0" }

// logIndex is the index in the key of an append.
func (s *Store) logIndex(key []byte) (interlock.Index, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(key), s.prefix+"log/"), 10, 64)
	if err != nil || s.logKey(interlock.Index(n)) != string(key) {
		return 0, &journal.DamageError{File: string(key), Reason: "the key names no index"}
	}
	return interlock.Index(n), nil
}

// head is how far a journal has come, as it was at one moment.
type head struct {
	epochText string // "" in an empty store
	tailText  string // "" before the first epoch record
	epoch     interlock.Epoch
	tail      position
	copied    bool
}

// head reads it, and refuses the format of another version.
func (s *Store) head(ctx context.Context) (h head, err error) {
	var got *clientv3.TxnResponse
	err = s.read(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Txn(ctx).Then(clientv3.OpGet(s.key("format")), clientv3.OpGet(s.key("epoch")),
			clientv3.OpGet(s.key("tail")), clientv3.OpGet(s.key("copied"))).Commit()
		return err
	})
	if err != nil {
		return h, unreachable(err)
	}
	format, epoch, tail, copied := valueOf(got, 0), valueOf(got, 1), valueOf(got, 2), valueOf(got, 3)
	h.epochText, h.tailText, h.copied = epoch, tail, copied != ""
	switch {
	case format == "" && epoch == "" && tail == "":
		return h, nil
	case format != strconv.Itoa(formatNumber):
		if n, err := strconv.Atoi(format); err == nil && n > formatNumber {
			return h, fmt.Errorf(
				"%w: the format of %s is %d, and this version knows %d", journal.ErrNewer, s.prefix, n, formatNumber,
			)
		}
		return h, s.damaged("format", "it names no format")
	}
	var word string
	if _, err := fmt.Sscanf(epoch, "%d %s", &h.epoch, &word); err != nil || h.epoch == 0 {
		return h, s.damaged("epoch", "it names no epoch")
	}
	if tail == "" {
		return h, nil
	}
	if h.tail, err = parsePosition(tail); err != nil {
		return h, s.damaged("tail", err.Error())
	}
	return h, nil
}

// Empty reports whether the store has never been written to.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	h, err := s.head(ctx)
	return err == nil && h.epochText == "", err
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

func (p position) String() string { return fmt.Sprintf("%d %08x", uint64(p.index), p.chain) }

func parsePosition(text string) (p position, err error) {
	if _, err := fmt.Sscanf(text, "%d %x", (*uint64)(&p.index), &p.chain); err != nil || p.String() != text {
		return position{}, errors.New("it names no place in the log")
	}
	return p, nil
}

func (s *Store) damaged(key, reason string) error {
	return &journal.DamageError{File: s.key(key), Reason: reason}
}

// unreachable returns what an error means before anything depends on its outcome.
func unreachable(err error) error {
	if noSpace(err) {
		return fmt.Errorf("%w: %w", journal.ErrNoSpace, err)
	}
	return fmt.Errorf("etcd: %w", err)
}
