package bench

import (
	"context"
	"errors"
	"time"
)

// A Target is one service, reached in one way: through one of its transports, or by one of
// its clients.
type Target interface {
	// Name returns the target's name in tables, such as "interlock stream".
	Name() string

	// Open returns a site. Where the service is ours it is fresh and empty; any other is as it
	// is.
	Open(ctx context.Context) (Site, error)
}

// A Site is a service that runs.
type Site interface {
	// Crew opens n agents that exclude one another. When ctx ends they end with it.
	Crew(ctx context.Context, n int) (*Crew, error)

	// Usage returns the service's usage since it was started. Unknown values are 0.
	Usage(ctx context.Context) (Usage, error)

	// Settle is Usage after the service has freed what it does not need any more: its garbage
	// is collected. It may put load on the service for that.
	Settle(ctx context.Context) (Usage, error)

	// Close ends the service if Open started it.
	Close() error
}

// A Crew is agents and what they share, such as a connection.
type Crew struct {
	Agents []Agent
	// Close ends them. Their leases and waits are released, or left to the service.
	Close func()
}

// An Agent is one holder of locks, of several at a time if it is asked to. It keeps alive
// what it holds. One call at a time is made of it and of its locks.
type Agent interface {
	// Acquire waits in the way that is the target's own until the agent holds the key.
	// queued, if not nil, is called when the agent is known to stand in line, or for
	// services without a line when its first try has failed; never after Acquire returned.
	Acquire(ctx context.Context, key string, queued func()) (Lock, error)

	// Try is Acquire without waiting: the error is ErrHeld when another agent holds the key.
	Try(ctx context.Context, key string) (Lock, error)
}

// A Lock is what an agent holds.
type Lock interface {
	Release(ctx context.Context) error
}

// ErrHeld reports that another agent holds the key.
var ErrHeld = errors.New("somebody else holds the key")

// A Store is an Agent that can also commit documents by their versions.
type Store interface {
	// Read returns the version of a document; 0 while there is none.
	Read(ctx context.Context, key string) (version uint64, err error)

	// Commit writes the document if it still has this version, and returns its new one. The
	// error is ErrStale if it has another.
	Commit(ctx context.Context, key string, version uint64) (uint64, error)
}

// ErrStale reports that a document has another version than the one that was read.
var ErrStale = errors.New("the document has changed")

// A Restarter is a Site that can be ended and started again on what it has written.
type Restarter interface {
	// End ends the service: in order, or with SIGKILL. Crews are of no use afterwards.
	End(ctx context.Context, kill bool) error

	// Start starts it again and returns when it has granted a lock.
	Start(ctx context.Context) error
}

// Usage is the resources that a service has used.
type Usage struct {
	CPU      time.Duration // of all its threads
	Resident int64         // bytes of memory that it occupies now
	Live     int64         // bytes of it that are in use, without garbage and reserves
	Written  int64         // bytes that it has made durable
}

// PollingAgent is an agent that has no line: it tries, pauses and tries again.
type PollingAgent struct {
	Agent
	Pause func() time.Duration // before the next try
	Tried func()               // if not nil, is called for each try
}

// Acquire tries until it holds the key.
func (p PollingAgent) Acquire(ctx context.Context, key string, queued func()) (Lock, error) {
	for {
		if p.Tried != nil {
			p.Tried()
		}
		lock, err := p.Try(ctx, key)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if queued != nil {
			queued()
			queued = nil
		}
		if err := pause(ctx, p.Pause()); err != nil {
			return nil, err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
