package etcdjournal

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock/journal"
)

// Kept is a small value beside the journal, such as the keys that sign fences. Only the
// owner of the journal saves it.
//
// A save that timed out may be carried out later. So each save names the revision that it
// replaces: one that comes late finds another and changes nothing.
type Kept struct {
	j    *Journal
	name string

	mu       sync.Mutex // guards the fields below
	revision int64      // of the value that the next save replaces; 0: there is none
	known    bool       // revision was read
}

// Kept returns the value of a name.
func (j *Journal) Kept(name string) *Kept { return &Kept{j: j, name: name} }

func (k *Kept) String() string { return k.j.store.key("keeps/" + k.name) }

// Load returns the last saved bytes, and nil if nothing was saved.
func (k *Kept) Load() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.load(context.Background())
}

// load needs mu.
func (k *Kept) load(ctx context.Context) (value []byte, err error) {
	s := k.j.store
	err = s.read(ctx, func(ctx context.Context) error {
		got, err := s.client.Get(ctx, k.String())
		if err != nil {
			return err
		}
		if k.revision, k.known, value = 0, true, nil; len(got.Kvs) > 0 {
			k.revision, value = got.Kvs[0].ModRevision, got.Kvs[0].Value
		}
		return nil
	})
	return value, err
}

// Save replaces the value.
func (k *Kept) Save(text []byte) error {
	if err := k.j.begin(); err != nil {
		return err
	}
	defer k.j.calls.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx := context.Background()
	if !k.known {
		if _, err := k.load(ctx); err != nil {
			return fmt.Errorf("%w: %w", journal.ErrFailed, err)
		}
	}
	// In the epoch of this owner every other value is of a save of its own that timed out.
	for {
		unchanged := clientv3.Compare(clientv3.ModRevision(k.String()), "=", k.revision)
		revision, saved, err := k.j.guardedIf(ctx, []clientv3.Cmp{unchanged}, clientv3.OpPut(k.String(), string(text)))
		if err != nil {
			return err
		}
		if saved {
			k.revision = revision
			return nil
		}
		value, err := k.load(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", journal.ErrFailed, err)
		}
		if string(value) == string(text) {
			return nil
		}
	}
}
