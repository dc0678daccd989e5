package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// lockTTL is longer than a session's, because nobody sends heartbeats for a lease
// that a script holds.
const lockTTL = 5 * time.Minute

func newLock(a *app) *cobra.Command {
	var q asking
	cmd := &cobra.Command{
		Use:   "lock KEY...",
		Short: "Take a lease for a script, which renews and releases it by itself",
		Long: `Take a lease on all of the keys, or on none, and print it as variables for a
shell. Nothing keeps it alive but "interlock renew": it ends when --ttl has passed
since the last renewal. "interlock run" is better wherever the work is one command.

Exit codes: 0 granted, 73 victim of a deadlock, 75 not acquired in time, 69 no server
answered, 77 not allowed, 2 wrong flags or keys.`,
		Example: `  eval "$(interlock lock account:12345 --wait 30s)" || exit
  ./charge --fence "$INTERLOCK_FENCE"
  interlock release --outcome done`,
		Args:              someArgs("one key or more"),
		ValidArgsFunction: a.completeKeys(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(); err != nil {
				return err
			}
			ctx, cancel := context.WithCancelCause(cmd.Context())
			defer cancel(nil)
			signals := make(chan os.Signal, 1)
			notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer signal.Stop(signals)
			taken := cancelBySignal(signals, cancel)
			defer taken()
			return a.lock(ctx, args, &q)
		},
	}
	q.flags(cmd, lockTTL)
	return cmd
}

// lock stands in line, call after call, and gives its place up when it leaves.
func (a *app) lock(ctx context.Context, keys []string, q *asking) error {
	body := map[string]any{
		"agent": q.Agent, "purpose": q.Purpose, "claims": claims(keys, q.mode()), "priority": q.Priority,
		"ttl_ms": q.TTL.Milliseconds(), "grace_ms": q.Grace.Milliseconds(), "max_hold_ms": q.MaxHold.Milliseconds(),
	}
	if q.Agent == "" {
		body["agent"] = ownName()
	}
	if q.MaxHold == 0 {
		delete(body, "max_hold_ms")
	}
	var deadline time.Time
	switch {
	case q.Wait == 0:
		body["on_conflict"] = "fail"
	default:
		body["on_conflict"], body["wait_ms"] = "wait", 0
		if q.Wait != forever {
			deadline = time.Now().Add(time.Duration(q.Wait))
		}
	}
	client := a.api()
	ask := request{method: http.MethodPost, path: "/v1/leases", body: body, id: freshID()}
	_, answer, err := client.insist(ctx, ask, false)
	var got leaseAnswer
	var shown *waitLine
	for {
		if err == nil {
			err = json.Unmarshal(answer, &got)
		}
		if err != nil || got.Outcome != "queued" {
			break
		}
		if shown == nil {
			shown = a.waitLine(got.Key, deadline)
			defer shown.end()
		}
		shown.queued(got.Ticket.Position, got.Ticket.Length, got.Ticket.eta(), got.Holders)
		answer, err = client.follow(ctx, got.Ticket.ID, deadline)
	}
	if shown != nil {
		shown.end()
	}
	var by *signalError
	switch {
	case errors.As(context.Cause(ctx), &by):
		client.undo(ask, &got)
		return exitWith(exitSignal+int(by.signal), errors.New("interrupted: the place in line was given up"))
	case errors.Is(err, errInTime):
		client.undo(ask, &got)
		return exitWith(exitNotAcquired, fmt.Errorf("%s was not free within %s%s", clean(got.Key), time.Duration(q.Wait), heldBy(got.Holders)))
	case err != nil:
		if a.json() && answer != nil {
			return errors.Join(err, a.raw(answer))
		}
		return err
	case a.json():
		return a.raw(answer)
	}
	a.tellLease(&got)
	return nil
}

// tellLease prints a lease so that a shell can read it, and what its holder should
// know besides on standard error.
func (a *app) tellLease(got *leaseAnswer) {
	var keys []string
	for _, c := range got.Lease.Claims {
		keys = append(keys, string(c.Key))
	}
	a.say("export INTERLOCK_LEASE=%s\nexport INTERLOCK_FENCE=%s\nexport INTERLOCK_KEYS=%s\n",
		quote(got.Lease.ID), got.Lease.Fence, quote(strings.Join(keys, "\n")))
	a.complain("granted under fence %s; it ends in %s unless it is renewed", got.Lease.Fence, short(ms(got.Lease.ExpiresIn)))
	a.tellNotes(got.Changed, got.Notes)
}

// tellNotes says on standard error what a new holder should know.
func (a *app) tellNotes(changed bool, notes []note) {
	if changed {
		a.complain("somebody who could write held it while you waited: read it again before you decide")
	}
	for i := range notes {
		n := &notes[i]
		if text := clean(n.Text); text != "" {
			a.complain("note of %s (%s ago): %q", party{Agent: n.Agent}.name(), short(ms(n.Age)), text)
		}
	}
}

func claims(keys []string, mode interlock.Mode) []claim {
	list := make([]claim, len(keys))
	for i, key := range keys {
		list[i] = claim{Key: interlock.Key(key), Mode: mode.String()}
	}
	return list
}

func heldBy(holders []holder) string {
	if len(holders) == 0 {
		return ""
	}
	text := ": held by " + holders[0].name()
	if purpose := clean(holders[0].Purpose); purpose != "" {
		text += " (" + purpose + ")"
	}
	return text
}

// errInTime says that the time for waiting is over.
var errInTime = errors.New("not in time")

// follow asks after a ticket until there is news, or until deadline (zero: for ever).
func (c *api) follow(ctx context.Context, ticket string, deadline time.Time) (answer []byte, err error) {
	const poll = 20 * time.Second // so that what is shown does not get old
	left := poll
	if !deadline.IsZero() {
		if left = min(left, time.Until(deadline)); left <= 0 {
			return nil, errInTime
		}
		// The server's answer comes first; this is for when there is no server.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(time.Second))
		defer cancel()
	}
	_, answer, err = c.insist(ctx, request{
		method: http.MethodGet, path: "/v1/tickets/" + url.PathEscape(ticket), wait: left,
		query: url.Values{"wait_ms": {strconv.FormatInt(max(left.Milliseconds(), 1), 10)}},
	}, true)
	if err != nil && ctx.Err() != nil && !deadline.IsZero() {
		err = errInTime
	}
	return answer, err
}

// undo gives back what a request has got, when nobody wants it any more. An answer
// may have been lost, so a request without one is repeated, and a ticket is tried as
// the lease that it may have become: they share their digits. What cannot be given
// back ends by itself.
func (c *api) undo(ask request, got *leaseAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if got.Outcome == "" {
		_, answer, err := c.do(ctx, ask)
		if err != nil || json.Unmarshal(answer, got) != nil {
			return
		}
	}
	id := got.Lease.ID
	if digits, ok := strings.CutPrefix(got.Ticket.ID, "t_"); ok {
		_, _, err := c.do(ctx, request{method: http.MethodDelete, path: "/v1/tickets/" + url.PathEscape(got.Ticket.ID), id: freshID()})
		if err == nil {
			return
		}
		id = "l_" + digits
	}
	if id != "" {
		_, _, _ = c.do(ctx, request{method: http.MethodPost, path: "/v1/leases/" + url.PathEscape(id) + "/release", body: struct{}{}, id: freshID()})
	}
}

// insist repeats a call under its id while it is not known what became of it, or
// while the server is on its way out: what was carried out is not carried out again.
// A server that is not there at all ends it at once, unless the call is about a place
// in line: that is kept for a while.
func (c *api) insist(ctx context.Context, r request, inLine bool) (status int, answer []byte, err error) {
	const tries = 8 // 25 s of pauses
	began := time.Now()
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		status, answer, err = c.do(ctx, r)
		switch {
		case err == nil || !worthRepeating(err, inLine):
			return status, answer, err
		case try >= tries && !(inLine && time.Since(began) < interlock.BareTicketTTL):
			return status, answer, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return status, answer, err
		}
		pause = min(2*pause, 12*time.Second)
	}
}

func worthRepeating(err error, inLine bool) bool {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		switch refusal.Code {
		case interlock.CodeOutcomeUnknown, interlock.CodeShuttingDown, interlock.CodeNotOwner, interlock.CodeOverloaded:
			return true
		}
		return false
	}
	return inLine && exitCode(err) == exitUnreachable
}

func newRenew(a *app) *cobra.Command {
	var progress string
	cmd := &cobra.Command{
		Use:   "renew [LEASE]",
		Short: "Renew a lease that lock gave",
		Long: `Renew a lease that "interlock lock" gave; without LEASE the one in
$INTERLOCK_LEASE. Exit code 79 says that the lease is lost: write nothing more.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := leaseArg(args)
			if err != nil {
				return err
			}
			var got leaseAnswer
			r := request{method: http.MethodPost, path: "/v1/leases/" + id + "/renew", body: map[string]string{"progress": progress}, again: true}
			return a.call(cmd.Context(), r, &got, func() error {
				a.say("renewed: fence %s ends in %s\n", got.Lease.Fence, short(ms(got.Lease.ExpiresIn)))
				if next := clean(got.Advice.Message); next != "" {
					a.complain("%s", next)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&progress, "progress", "", "how far the work has come, for others to read, such as 3/5")
	return cmd
}

func newRelease(a *app) *cobra.Command {
	var outcome, note string
	cmd := &cobra.Command{
		Use:   "release [LEASE]",
		Short: "Give a lease back, with a note for the next holder",
		Long: `Give a lease back; without LEASE the one in $INTERLOCK_LEASE. Exit code 79 says
that it was lost before, so that somebody else may have worked on the keys.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := leaseArg(args)
			if err != nil {
				return err
			}
			r := request{method: http.MethodPost, path: "/v1/leases/" + id + "/release", body: map[string]string{"outcome": outcome, "note": note}, id: freshID(), again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("released\n")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "done", "how it went, in a word")
	cmd.Flags().StringVar(&note, "note", "", "what the next holder should know")
	return cmd
}

// leaseArg is the lease that a command is about.
func leaseArg(args []string) (string, error) {
	id := os.Getenv("INTERLOCK_LEASE")
	if len(args) == 1 {
		id = args[0]
	}
	if id == "" {
		return "", usage("name the lease, or set INTERLOCK_LEASE as `interlock lock` prints it")
	}
	if _, err := interlock.ParseLeaseID(id); err != nil {
		// The text is a secret if it is nearly right, so it is not repeated.
		return "", usage("that is no lease: want l_ and 32 hexadecimal digits, as `interlock lock` prints it")
	}
	return id, nil
}
