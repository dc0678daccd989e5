package client

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
)

// updateTries is the number of commits after which Update returns an error: far more than a
// caller with occasional conflicts needs.
const updateTries = 32

// Update changes one document based on its present state: it reads the document, calls change
// to compute the write, and commits that. When another writer was faster it tries again, after
// a random pause that grows, so change may be called several times; it must be quick, and have
// no other lasting effects. The write's key may be left out. An error of change ends it and is
// returned.
//
// After 32 stale commits it returns the last *StaleError. To have a model think about each
// change, take a lease instead, so that no agent thinks in vain; to count, use Add, which is
// never stale.
func (c *Client) Update(
	ctx context.Context, key interlock.Key, change func(old interlock.Document) (interlock.Write, error),
) (*CommitResult, error) {
	flow := c.flow(ctx, "")
	pace := Backoff{Least: 5 * time.Millisecond, Most: time.Second}
	for tries := 1; ; tries++ {
		old, err := c.Document(ctx, key)
		if err != nil {
			return nil, err
		}
		write, err := change(old)
		if err != nil {
			return nil, err
		}
		if write.Key == "" {
			write.Key = key
		}
		done, err := c.Commit(ctx, Commit{Reads: Seen(old), Writes: []interlock.Write{write}, Flow: flow})
		if _, stale := errors.AsType[*StaleError](err); !stale || tries == updateTries {
			return done, err
		}
		if cause := pace.Wait(ctx, 0); cause != nil {
			return nil, errors.Join(err, cause)
		}
	}
}
