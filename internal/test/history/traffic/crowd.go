package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/history"
)

const queue = "jobs"

// The keys of the work, by kind of operation.
var (
	locks     = []string{"lock/0", "lock/1", "lock/2", "lock/3"}
	tree      = []string{"tree", "tree/a", "tree/a/x", "tree/b"}
	registers = []string{"register/0", "register/1", "register/2"}
	ledgers   = []string{"ledger/0", "ledger/1"}
)

const (
	// forever is the ttl of leases that never expire within a history.
	forever = 12 * time.Hour
	// brief is that of leases that are to expire.
	brief = interlock.MinTTL
)

// Crowd is agents of all kinds at work. At most 16 work on one key, which is what
// porcupine can check.
type Crowd struct {
	record *history.Recorder
	site   *Site
	audit  *Client
	all    sync.WaitGroup
	stop   chan struct{}
	cancel context.CancelFunc

	mu  sync.Mutex
	err error
}

// agent does some operations, and is asked again and again.
type agent func(ctx context.Context, c *Client) error

// Mix is the number of agents of each kind.
type Mix struct {
	Lockers, Sharers, Editors, Keepers, Workers int
	// Rest is the longest pause of an agent between two pieces of work. 0 stands for 20 ms.
	Rest time.Duration
}

// The mixes of a history in one namespace, and of one among many.
var (
	Full  = Mix{Lockers: 8, Sharers: 6, Editors: 6, Keepers: 4, Workers: 4}
	Small = Mix{Lockers: 1, Sharers: 1, Editors: 1, Keepers: 1, Rest: time.Second}
)

// Start prepares the server and sets a crowd to work, until Stop.
func Start(ctx context.Context, site *Site, record *history.Recorder, seed uint64, mix Mix) (*Crowd, error) {
	w := &Crowd{record: record, site: site, stop: make(chan struct{}), audit: NewClient("audit", site, record, seed)}
	w.audit.patient = true
	if err := w.audit.prepare(ctx); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	rest := cmp.Or(mix.Rest, 20*time.Millisecond)
	for _, kind := range []struct {
		name string
		n    int
		do   agent
	}{
		{"locker", mix.Lockers, lock},
		{"sharer", mix.Sharers, share},
		{"editor", mix.Editors, edit},
		{"keeper", mix.Keepers, keep},
		{"worker", mix.Workers, work},
	} {
		for i := range kind.n {
			c := NewClient(fmt.Sprint(kind.name, i), site, record, seed)
			w.all.Go(func() { w.run(ctx, c, kind.do, rest) })
		}
	}
	return w, nil
}

func (w *Crowd) run(ctx context.Context, c *Client, do agent, rest time.Duration) {
	for {
		select {
		case <-w.stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		if err := do(ctx, c); err != nil {
			w.mu.Lock()
			w.err = errors.Join(w.err, err)
			w.mu.Unlock()
			return
		}
		c.sleep(ctx, time.Duration(c.random.Int64N(int64(rest))))
	}
}

// Stop lets all agents finish their work, and cuts off those that wait for others. Then all
// their keys and documents are read once more. A server must be there.
func (w *Crowd) Stop(ctx context.Context) error {
	close(w.stop)
	rest := time.AfterFunc(2*time.Second, w.cancel)
	defer rest.Stop()
	w.all.Wait()
	w.cancel()
	return errors.Join(w.err, w.auditAll(ctx))
}

func (w *Crowd) auditAll(ctx context.Context) error {
	for _, key := range slices.Concat(locks, tree, ledgers) {
		if op, err := w.audit.Look(ctx, key); err != nil || op.Open() {
			return fmt.Errorf("the last look at %s: %w", key, errors.Join(err, ctx.Err()))
		}
	}
	keys := slices.Concat(registers, ledgers)
	for _, op := range w.record.Ops() {
		if op.Kind == history.Submit {
			keys = append(keys, effectKey(op.ID))
		}
	}
	for some := range slices.Chunk(keys, 50) {
		if op, err := w.audit.Read(ctx, some...); err != nil || op.Open() {
			return fmt.Errorf("the last read: %w", errors.Join(err, ctx.Err()))
		}
	}
	return nil
}

func one[T any](c *Client, list []T) T { return list[c.random.IntN(len(list))] }

// lock takes one of a few keys for itself, for as long as it likes.
func lock(ctx context.Context, c *Client) error {
	key := one(c, locks)
	if c.random.IntN(4) == 0 {
		_, err := c.Look(ctx, key)
		return err
	}
	op, err := c.Acquire(ctx, LeaseAttempt{
		Claims: []history.Claim{{Key: key, Mode: interlock.Exclusive}}, TTL: forever, Wait: c.random.IntN(3) > 0,
	})
	if err != nil || op.Granted == nil {
		return err
	}
	held := op.Granted
	switch c.random.IntN(4) {
	case 0:
		_, err = c.Renew(ctx, held.Lease)
	case 1:
		_, err = c.CheckFence(ctx, key, held.Fence)
	case 2:
		_, err = c.Look(ctx, key)
	}
	if err == nil {
		_, err = c.Release(ctx, held.Lease, false)
	}
	if err == nil && c.random.IntN(4) == 0 {
		_, err = c.CheckFence(ctx, key, held.Fence)
	}
	return err
}

var modes = []interlock.Mode{
	interlock.IntentShared, interlock.IntentExclusive, interlock.Shared, interlock.SharedIntentExclusive,
	interlock.Exclusive,
}

// share takes keys above and below each other in all modes, for a short time, and leaves
// some of them to expire.
func share(ctx context.Context, c *Client) error {
	key := one(c, tree)
	if c.random.IntN(4) == 0 {
		_, err := c.Look(ctx, key)
		return err
	}
	x := LeaseAttempt{Claims: []history.Claim{{Key: key, Mode: one(c, modes)}}, TTL: brief, Fragile: true}
	if other := one(c, tree); other != key && c.random.IntN(3) == 0 {
		x.Claims = append(x.Claims, history.Claim{Key: other, Mode: one(c, modes)})
	}
	if c.random.IntN(2) == 0 {
		x.Wait, x.MaxWait = true, time.Duration(100+c.random.IntN(2000))*time.Millisecond
	}
	op, err := c.Acquire(ctx, x)
	if err != nil || op.Granted == nil {
		return err
	}
	lease := op.Granted.Lease
	for range c.random.IntN(3) {
		if op, err = c.Renew(ctx, lease); err != nil || op.Open() || op.Code != "" {
			return err
		}
		c.sleep(ctx, time.Duration(c.random.IntN(100))*time.Millisecond)
	}
	if c.random.IntN(5) == 0 {
		c.sleep(ctx, brief+time.Duration(c.random.IntN(300))*time.Millisecond)
		_, err = c.Renew(ctx, lease)
		return err
	}
	_, err = c.Release(ctx, lease, true)
	return err
}

// edit changes documents by their versions, one or two at once, sometimes by old ones or by
// none.
func edit(ctx context.Context, c *Client) error {
	op, err := c.Read(ctx, registers...)
	if err != nil || op.Open() {
		return err
	}
	for range 1 + c.random.IntN(3) { // from the second on, what was read is old
		first := c.random.IntN(len(registers))
		var reads []history.Version
		var keys []string
		for i := range 1 + c.random.IntN(2) {
			d := op.Docs[(first+i)%len(op.Docs)]
			keys = append(keys, d.Key)
			if c.random.IntN(8) > 0 {
				reads = append(reads, d.Version)
			}
		}
		if _, err := c.Commit(ctx, "", reads, keys...); err != nil {
			return err
		}
	}
	return nil
}

// keep writes documents that only a holder of their key may write, and sometimes sleeps
// until it is none.
func keep(ctx context.Context, c *Client) error {
	key := one(c, ledgers)
	return hold(ctx, c, key, func(held *history.Grant) error {
		for range 1 + c.random.IntN(3) {
			if gone, err := write(ctx, c, key, held); gone || err != nil {
				return err
			}
			if c.random.IntN(10) == 0 {
				c.sleep(ctx, brief+2*grace)
			}
		}
		_, err := c.Release(ctx, held.Lease, true)
		return err
	})
}

// hold waits for a key and does something under its lease.
func hold(ctx context.Context, c *Client, key string, do func(*history.Grant) error) error {
	op, err := c.Acquire(
		ctx,
		LeaseAttempt{Claims: []history.Claim{{Key: key, Mode: interlock.Exclusive}}, TTL: brief, Wait: true, Fragile: true},
	)
	if err != nil || op.Granted == nil {
		return err
	}
	return do(op.Granted)
}

// write reads a document and writes it under a lease. gone means that the lease is over.
func write(ctx context.Context, c *Client, key string, held *history.Grant) (gone bool, err error) {
	op, err := c.Read(ctx, key)
	if err != nil || op.Open() {
		return false, err
	}
	if op, err = c.Commit(ctx, held.Lease, []history.Version{op.Docs[0].Version}, key); err != nil {
		return false, err
	}
	_, err = c.CheckFence(ctx, key, held.Fence)
	return !op.Open() && op.Code != "" && op.Code != interlock.CodeStale, err
}

// work submits tasks and does those of others; some take longer than the lease.
func work(ctx context.Context, c *Client) error {
	if c.random.IntN(2) == 0 {
		_, err := c.Submit(ctx, queue, fmt.Sprint("job/", c.random.IntN(8)))
		return err
	}
	op, err := c.Pull(ctx, queue, brief)
	if err != nil || op.Task == nil {
		return err
	}
	if c.random.IntN(8) == 0 {
		c.sleep(ctx, brief+time.Duration(c.random.IntN(400))*time.Millisecond)
	}
	_, err = c.Ack(ctx, op)
	return err
}
