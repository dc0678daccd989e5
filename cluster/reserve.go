package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock/placement"
)

// Reservation keeps the servers of a journal away from all shards, so that a tool can open them.
type Reservation struct {
	// Directory is that of the journal. It has one shard if the journal is older than directories.
	Directory placement.Directory

	servers Value
	ttl     time.Duration
	id      string
	beat    uint64
	cancel  context.CancelFunc
	done    chan struct{}
}

// InUseError reports a server that has the journal open.
type InUseError struct{ HTTP string }

func (e *InUseError) Error() string { return fmt.Sprintf("the server at %s has it open", e.HTTP) }

// Reserve takes the seats of all shards under a name. It waits for the TTL to find out whether the servers in
// the table are alive; the error is an *InUseError if one is.
func Reserve(ctx context.Context, directory, servers Value, name string) (*Reservation, error) {
	r := &Reservation{servers: servers, ttl: DefaultTTL, id: rand.Text(), done: make(chan struct{})}
	v, err := load(ctx, directory)
	if err != nil {
		return nil, err
	}
	if v.Version == "" {
		r.Directory, err = placement.NewDirectory(1)
	} else {
		r.Directory, err = placement.DecodeDirectory(v.Data)
	}
	if err != nil {
		return nil, err
	}
	var first *table
	for began := time.Now(); ; {
		v, t, err := r.look(ctx)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = t
		}
		if m := alive(first, t); m != nil {
			return nil, &InUseError{m.HTTP}
		}
		if len(t.Members) == 0 || time.Since(began) >= r.ttl {
			if done, err := r.store(ctx, name, v); err != nil {
				return nil, err
			} else if done {
				break
			}
			continue // another one came first
		}
		select {
		case <-time.After(r.ttl / looks):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	keep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	go func() {
		defer close(r.done)
		for {
			select {
			case <-time.After(beatEvery(r.ttl)):
				r.renew(keep, name)
			case <-keep.Done():
				return
			}
		}
	}()
	return r, nil
}

// renew stores the reservation with a new beat. A server that stores its own at the same time may be faster.
func (r *Reservation) renew(ctx context.Context, name string) {
	for range 4 {
		v, _, err := r.look(ctx)
		if err != nil {
			return
		}
		if done, err := r.store(ctx, name, v); done || err != nil {
			return
		}
	}
}

// alive returns a member that showed a sign of life between two looks at the table.
func alive(before, now *table) *Member {
	i := slices.IndexFunc(now.Members, func(m Member) bool {
		was := before.member(m.ID)
		return was == nil || was.Beat != m.Beat
	})
	if i < 0 {
		return nil
	}
	return &now.Members[i]
}

func (r *Reservation) look(ctx context.Context) (version string, t *table, err error) {
	v, err := load(ctx, r.servers)
	if err != nil || v.Version == "" {
		return "", newTable(r.Directory.All()), err
	}
	t, err = decodeTable(v.Data, r.Directory.All())
	return v.Version, t, err
}

// store replaces the table by one with nothing but the reservation in it.
func (r *Reservation) store(ctx context.Context, name, was string) (done bool, err error) {
	r.beat++
	t := newTable(r.Directory.All())
	t.Members = []Member{{Member: placement.Member{ID: r.id}, HTTP: name, Beat: r.beat}}
	for i := range t.Seats {
		t.Seats[i].Holder = r.id
	}
	return r.swap(ctx, t, was)
}

func (r *Reservation) swap(ctx context.Context, t *table, was string) (done bool, err error) {
	text, err := t.encode()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	_, done, err = r.servers.Swap(ctx, text, was)
	return done, err
}

// Release lets servers take the shards.
func (r *Reservation) Release(ctx context.Context) {
	r.cancel()
	<-r.done
	for range 4 {
		v, _, err := r.look(ctx)
		if err != nil {
			return
		}
		if done, err := r.swap(ctx, newTable(r.Directory.All()), v); done || err != nil {
			return
		}
	}
}
