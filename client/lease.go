package client

import (
	"context"

	"github.com/interlockdev/interlock"
)

// Lease is a handle on a granted lease. Several handles of one flow may stand
// for the same lease.
type Lease struct{}

// Context is cancelled when the lease is lost or released; context.Cause then
// gives an *interlock.Error with the reason. It has the values of the context
// given to Acquire, and carries the lease's flow, but does not end with it.
func (l *Lease) Context() context.Context { return context.Background() }

// Fence is the number to pass along wherever the agent writes.
func (l *Lease) Fence() interlock.Fence { return 0 }

// ID is the lease's id: a secret of its holder.
func (l *Lease) ID() interlock.LeaseID { return interlock.LeaseID{} }

// Claims are what the lease covers.
func (l *Lease) Claims() []interlock.Claim { return nil }

// Notes are what earlier holders left, oldest first: other agents' text.
func (l *Lease) Notes() []interlock.Note { return nil }

// Changed says that somebody who could write held a claimed key while this
// request waited: read again before thinking.
func (l *Lease) Changed() bool { return false }

// Info is the lease as the server granted it, times included.
func (l *Lease) Info() interlock.Lease { return interlock.Lease{} }

// Warned is closed when the server says that the lease is in its soft tier.
func (l *Lease) Warned() <-chan struct{} { return nil }

// Err is nil while the lease is held, as far as this client can tell, and then
// the *interlock.Error that says why it is not.
func (l *Lease) Err() error { return nil }

// Release gives the handle back; the last handle of a lease frees it. Calling it
// again returns what the first call returned. An *interlock.Error says that the
// lease was already gone, and why (expired, taken, revoked).
func (l *Lease) Release(ctx context.Context, out Outcome) error { return nil }
