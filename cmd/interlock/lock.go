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
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
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
	_, answer, err := client.insist(ctx, request{method: http.MethodPost, path: "/v1/leases", body: body, id: freshID()})
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
	switch {
	case errors.Is(err, errInTime), ctx.Err() != nil:
		client.leave(got.Ticket.ID)
		if ctx.Err() != nil {
			return exitWith(exitSignal+int(syscall.SIGINT), errors.New("interrupted: the place in line was given up"))
		}
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
	}
	_, answer, err = c.insist(ctx, request{
		method: http.MethodGet, path: "/v1/tickets/" + url.PathEscape(ticket), wait: left,
		query: url.Values{"wait_ms": {strconv.FormatInt(max(left.Milliseconds(), 1), 10)}},
	})
	return answer, err
}

// leave gives a place in line up. If it fails, the ticket ends by itself when nobody
// asks after it.
func (c *api) leave(ticket string) {
	if ticket == "" {
		return
	}
	_, _, _ = c.do(context.Background(), request{method: http.MethodDelete, path: "/v1/tickets/" + url.PathEscape(ticket), id: freshID()})
}

// insist repeats a call under its id while it is not known what became of it, or
// while the server is on its way out: what was carried out is not carried out again.
func (c *api) insist(ctx context.Context, r request) (status int, answer []byte, err error) {
	pause := 100 * time.Millisecond
	for range 8 {
		status, answer, err = c.do(ctx, r)
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok {
			return status, answer, err
		}
		switch refusal.Code {
		case interlock.CodeOutcomeUnknown, interlock.CodeShuttingDown, interlock.CodeNotOwner, interlock.CodeOverloaded:
		default:
			return status, answer, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return status, answer, err
		}
		pause *= 2
	}
	return status, answer, err
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
			r := request{method: http.MethodPost, path: "/v1/leases/" + id + "/renew", body: map[string]string{"progress": progress}}
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
			r := request{method: http.MethodPost, path: "/v1/leases/" + id + "/release", body: map[string]string{"outcome": outcome, "note": note}, id: freshID()}
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
