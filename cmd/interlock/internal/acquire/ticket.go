package acquire

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
)

// Follow asks after a ticket until there is news, or until deadline (zero: for ever).
func Follow(ctx context.Context, c *cli.API, ticket string, deadline time.Time) (answer []byte, err error) {
	const poll = 20 * time.Second // so that what is shown does not get old
	left := poll
	if !deadline.IsZero() {
		if left = min(left, time.Until(deadline)); left <= 0 {
			return nil, cli.ErrInTime
		}
		// The server's answer comes first; this is for when there is no server.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(time.Second))
		defer cancel()
	}
	_, answer, err = c.Insist(ctx, cli.Request{
		Method: http.MethodGet, Path: "/v1/tickets/" + url.PathEscape(ticket), Wait: left,
		Query: url.Values{"wait_ms": {strconv.FormatInt(max(left.Milliseconds(), 1), 10)}},
	}, true)
	if err != nil && ctx.Err() != nil && !deadline.IsZero() {
		err = cli.ErrInTime
	}
	return answer, err
}

// Undo releases the result of a request for a lease. An answer may have been lost, so a
// request without one is repeated, and a ticket is tried as the lease that it may have become:
// they share their digits. Leases that cannot be released end by themselves.
func Undo(c *cli.API, ask cli.Request, got *view.LeaseAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), link.LeaveTimeout)
	defer cancel()
	if !found(ctx, c, ask, got) || leave(ctx, c, got) {
		return
	}
	id := got.Lease.ID
	if digits, ok := strings.CutPrefix(got.Ticket.ID, "t_"); ok {
		id = "l_" + digits
	}
	if id != "" {
		_, _, _ = c.Do(
			ctx, cli.Request{Method: http.MethodPost, Path: view.LeasePath(id, "release"), Body: struct{}{}, ID: cli.FreshID()},
		)
	}
}

// LeaveLine leaves the line and touches nothing else: the lease was there before.
func LeaveLine(c *cli.API, ask cli.Request, got *view.LeaseAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), link.LeaveTimeout)
	defer cancel()
	if found(ctx, c, ask, got) {
		leave(ctx, c, got)
	}
}

// found makes sure that it is known what a request has got.
func found(ctx context.Context, c *cli.API, ask cli.Request, got *view.LeaseAnswer) bool {
	if got.Outcome != "" {
		return true
	}
	_, answer, err := c.Do(ctx, ask)
	return err == nil && json.Unmarshal(answer, got) == nil
}

func leave(ctx context.Context, c *cli.API, got *view.LeaseAnswer) (left bool) {
	if got.Ticket.ID == "" {
		return false
	}
	_, _, err := c.Do(
		ctx, cli.Request{Method: http.MethodDelete, Path: "/v1/tickets/" + url.PathEscape(got.Ticket.ID), ID: cli.FreshID()},
	)
	return err == nil
}
