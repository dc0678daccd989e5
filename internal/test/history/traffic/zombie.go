package traffic

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/history"
)

// Zombie is the work of a client process of its own, which is stopped while it holds a lease
// and continues as if nothing had happened: it writes under its lease for as long as it is
// permitted. Its part of the history goes to out. It returns when out is closed or ctx ends.
func Zombie(ctx context.Context, address string, began time.Time, out io.Writer) error {
	site := &Site{}
	site.Move(address)
	c := NewClient("zombie", site, history.NewCopier(began, out), 1)
	for ctx.Err() == nil {
		err := hold(ctx, c, ZombieKey, func(held *history.Grant) error {
			for ctx.Err() == nil {
				if gone, err := write(ctx, c, ZombieKey, held); gone || err != nil {
					return err
				}
				op, err := c.Renew(ctx, held.Lease)
				if err != nil || op.Code != "" {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ZombieKey is where it writes.
const ZombieKey = "ledger/zombie"

// Succeed waits for the key of the zombie, writes there, and releases it. It reports whether
// the write was carried out.
func Succeed(ctx context.Context, c *Client) (ok bool, err error) {
	err = hold(ctx, c, ZombieKey, func(held *history.Grant) error {
		op, err := c.Read(ctx, ZombieKey)
		if err != nil || op.Open() {
			return errors.Join(err, ctx.Err())
		}
		if op, err = c.Commit(ctx, held.Lease, []history.Version{op.Docs[0].Version}, ZombieKey); err != nil {
			return err
		}
		ok = op.OK()
		_, err = c.Release(ctx, held.Lease, false)
		return err
	})
	return ok, err
}

// Refused reports whether an operation was refused because its lease is over.
func Refused(op *history.Op) bool {
	switch op.Code {
	case interlock.CodeTaken, interlock.CodeExpired, interlock.CodeReleased, interlock.CodeFenced:
		return op.Kind == history.Commit || op.Kind == history.CheckFence || op.Kind == history.Renew
	}
	return false
}
