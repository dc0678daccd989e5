package oncejournal

import (
	"context"
	"time"

	"github.com/interlockdev/interlock/journal/remote"
)

const seatName = "seat"

// applicant takes the seat, which is an object. Its holder writes it anew again and again.
type applicant struct {
	*driver
	me    string
	ttl   time.Duration
	mine  string    // the version of the seat that this one wrote, if it did
	other string    // the version that another one wrote
	since time.Time // when this one saw that first
}

// Seat implements remote.Driver.
func (d *driver) Seat(me string, ttl time.Duration) remote.Applicant {
	return &applicant{driver: d, me: me, ttl: ttl}
}

// Sit implements remote.Applicant.
func (a *applicant) Sit(ctx context.Context) (holder string, err error) {
	if a.mine != "" {
		if done, err := a.write(ctx, a.me, a.mine); done || err != nil {
			return a.me, err
		}
		a.mine = ""
	}
	o, holder, err := a.look(ctx)
	switch {
	case err != nil:
		return "", err
	case holder == "" || holder == a.me: // free, or written by an attempt without an answer
	case o.version != a.other:
		a.other, a.since = o.version, time.Now()
		return holder, nil
	case time.Since(a.since) < a.ttl:
		return holder, nil
	}
	if done, err := a.write(ctx, a.me, o.version); done || err != nil {
		return a.me, err
	}
	return "", nil // another one was faster
}

// look reads the seat. It has no holder if it is free.
func (a *applicant) look(ctx context.Context) (o object, holder string, err error) {
	list, err := a.objects.read(ctx, []string{seatName}, true)
	if err != nil || !list[0].exists() {
		return o, "", err
	}
	data, err := a.plain(&list[0])
	return list[0], string(data), err
}

// write makes a holder of the seat's if its version is was.
func (a *applicant) write(ctx context.Context, holder, was string) (bool, error) {
	version, done, err := a.objects.put(ctx, object{name: seatName, data: fresh([]byte(holder))}, was, "")
	if done && holder == a.me {
		a.mine = version
	}
	return done, err
}

// Rise implements remote.Applicant.
func (a *applicant) Rise(ctx context.Context) error {
	a.mine = ""
	o, holder, err := a.look(ctx)
	if err != nil || holder != a.me {
		return err
	}
	_, err = a.write(ctx, "", o.version)
	return err
}
