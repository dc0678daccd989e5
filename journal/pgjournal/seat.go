package pgjournal

import (
	"context"
	"time"

	"github.com/interlockdev/interlock/journal/remote"
)

// applicant takes the seat, which is a row with a time of the database's clock.
type applicant struct {
	*driver
	me  string
	ttl time.Duration
}

// Seat implements remote.Driver.
func (d *driver) Seat(me string, ttl time.Duration) remote.Applicant { return &applicant{d, me, ttl} }

// Sit implements remote.Applicant. It writes only if the seat is free or the applicant's own.
func (a *applicant) Sit(ctx context.Context) (holder string, err error) {
	r, err := a.one(ctx, sqlHolder)
	if noTable(err) {
		r, err = nil, a.makeTables(ctx)
	}
	if err != nil || r != nil && r.text(0) != a.me {
		if r != nil {
			holder = r.text(0)
		}
		return holder, err
	}
	if r, err = a.one(ctx, sqlSit, a.me, a.ttl.Milliseconds()); err != nil || r == nil {
		return "", err // another one was faster
	}
	return r.text(0), nil
}

// Rise implements remote.Applicant.
func (a *applicant) Rise(ctx context.Context) error {
	_, err := a.one(ctx, sqlRise, a.me)
	return err
}
