package client

import (
	"context"
	"time"

	"github.com/interlockdev/interlock/proto"
)

// Renewal is how a lease continues.
type Renewal struct {
	// TTL is the lease's from now on, within the limits of its keys' patterns; at most that of the
	// session. 0 leaves it as it is.
	TTL time.Duration
}

// Renew changes the ttl of the lease, such as before work in which heartbeats may fail for longer.
// The ttl that it has then is in Info. A lease is kept alive without calls of Renew: the client
// sends the heartbeats.
func (l *Lease) Renew(ctx context.Context, to Renewal) error {
	if err := l.Err(); err != nil {
		return err
	}
	k := l.g.c.newCall(proto.OpRenew)
	k.op.ID, k.op.TTL = l.g.id, to.TTL
	if _, err := l.g.c.do(ctx, k, "the renewal of the lease"); err != nil {
		return l.reason(err)
	}
	return l.Err()
}
