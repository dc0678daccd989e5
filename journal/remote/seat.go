package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"
)

// Holder is the holder of the seat, as it wants to be found.
type Holder struct {
	HTTP string `json:"http"` // a URL
	GRPC string `json:"grpc"` // host:port
	// Word distinguishes two holders with the same addresses.
	Word string `json:"word"`
}

// Seat decides which of several servers tries to be the owner of the journal. Its holder renews it:
// when the holder dies, or is cut off, the seat is free after some time. It keeps servers from
// fencing each other in turn, and nothing else: what must not happen twice is decided by the
// journal's epoch.
type Seat struct {
	store     *Store
	applicant Applicant
	me        string // what is stored in the seat
	ttl       time.Duration
	cancel    context.CancelFunc
	done      chan struct{}
	lost      chan struct{}
}

// DefaultSeatTTL is after how long without a word from its holder the seat is free.
const DefaultSeatTTL = 4 * time.Second

// Renewals and looks at the seat, in parts of its time.
const (
	renewals = 4
	looks    = 8
)

// Take waits until the seat is free and takes it, or until ctx ends. Meanwhile it passes the
// seat's holder to seen, whenever that is another one than before, and the error that keeps it
// from finding out to failed. ttl is a whole number of seconds, at least 2; 0 means
// DefaultSeatTTL.
func (s *Store) Take(
	ctx context.Context, me Holder, ttl time.Duration, seen func(Holder), failed func(error),
) (*Seat, error) {
	if ttl == 0 {
		ttl = DefaultSeatTTL
	}
	me.Word = rand.Text()
	text, err := json.Marshal(me)
	if err != nil {
		return nil, err
	}
	seat := &Seat{
		store: s, applicant: s.driver.Seat(string(text), ttl), me: string(text), ttl: ttl, done: make(chan struct{}),
		lost: make(chan struct{}),
	}
	known := ""
	for {
		holder, err := seat.sit(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			failed(err)
		case holder == seat.me:
			renewing, cancel := context.WithCancel(context.Background())
			seat.cancel = cancel
			go seat.hold(renewing)
			return seat, nil
		case err == nil && holder != known:
			known = holder
			var other Holder
			if json.Unmarshal([]byte(holder), &other) == nil {
				seen(other)
			}
		}
		if !pause(ctx, ttl/looks) {
			return nil, ctx.Err()
		}
	}
}

// sit takes the seat if it is free, and returns what is stored there afterwards.
func (t *Seat) sit(ctx context.Context) (holder string, err error) {
	err = t.store.read(ctx, func(ctx context.Context) (err error) {
		holder, err = t.applicant.Sit(ctx)
		return err
	})
	return holder, err
}

// hold renews the seat until another server holds it or renewing ends. When the seat is
// free all the same, because the engine could not be reached for so long, it is taken again.
func (t *Seat) hold(ctx context.Context) {
	defer close(t.done)
	for pause(ctx, t.ttl/renewals) {
		limit, cancel := context.WithTimeout(ctx, t.ttl/renewals)
		holder, err := t.applicant.Sit(limit)
		cancel()
		if err == nil && holder != "" && holder != t.me {
			close(t.lost)
			return
		}
	}
}

// Lost is closed when another server holds the seat.
func (t *Seat) Lost() <-chan struct{} { return t.lost }

// Leave frees the seat, so that another one need not wait until its time is over.
func (t *Seat) Leave(ctx context.Context) {
	t.cancel()
	<-t.done
	_ = t.store.read(ctx, t.applicant.Rise)
}
