package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// lockTTL is longer than a session's, because a lease that a script holds has no heartbeats.
const lockTTL = 5 * time.Minute

func newLock(a *app) *cobra.Command {
	var q leaseFlags
	var documents bool
	cmd := &cobra.Command{
		Use:   "lock KEY...",
		Short: "Take a lease for a script that renews and releases it",
		Long: `Take a lease on all of the keys, or on none, and print it as variables for a shell. Keep it
alive with "interlock renew": it ends when --ttl has passed since the last renewal. Prefer
"interlock run" if the work is one command.

With --documents the documents at the keys come with the lease, read in the same step:
with -o json as "documents", else in words on standard error. INTERLOCK_AS_OF is then
the version of the namespace that they are of, for "interlock commit --as-of".

Inside "interlock run" or the work at a task, the session around this command counts as
waiting while it stands in line.

Exit codes: 0 granted, 73 victim of a deadlock, 75 not acquired in time, 69 no server
answered, 77 not allowed, 2 wrong flags or keys.`,
		Example: `  eval "$(interlock lock account:12345 --wait 30s)" || exit
  ./charge --fence "$INTERLOCK_FENCE"
  interlock release --outcome done`,
		ValidArgsFunction: a.completeKeys(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(cmd); err != nil {
				return err
			}
			return a.lock(cmd.Context(), args, &q, documents)
		},
	}
	q.flags(cmd, lockTTL)
	cmd.Flags().BoolVar(
		&documents, "documents", false, "also print the documents at the keys, with their versions, writers and notes",
	)
	return cmd
}

// lock stands in line for a lease.
func (a *app) lock(ctx context.Context, keys []string, q *leaseFlags, documents bool) error {
	list, err := q.claims(keys)
	if err != nil {
		return err
	}
	body := map[string]any{}
	q.fields(body)
	if documents {
		body["documents"] = true
	}
	if len(list) > 0 {
		body["claims"] = claimsOf(list)
	}
	s := &longPollRequest{
		a: a, api: a.api(), wait: q.Wait, parties: q.Parties, undo: undoAcquire, late: lateFor,
		ask: request{Method: http.MethodPost, Path: "/v1/leases", Body: body, ID: freshID()},
	}
	if q.Wait != 0 {
		s.around, s.own = a.around(), &presence{api: s.api, agent: body["agent"].(string), ttl: q.TTL}
	}
	return s.stand(ctx, "granted")
}

// tellLease prints a lease so that a shell can read it, and what its holder should know besides on
// standard error. how names what has become of it.
func (a *app) tellLease(how string, got *leaseAnswer) {
	keys := make([]interlock.Key, len(got.Lease.Claims))
	for i, c := range got.Lease.Claims {
		keys[i] = c.Key
	}
	a.say("export INTERLOCK_LEASE=%s\nexport INTERLOCK_FENCE=%s\nexport INTERLOCK_KEYS=%s\n",
		quote(got.Lease.ID), got.Lease.Fence, quote(joinKeys(keys, "\n")))
	if got.Documents != nil {
		a.say("export INTERLOCK_AS_OF=%s\n", got.AsOf)
	}
	a.complain(
		"%s under fence %s; it ends in %s unless it is renewed", how, got.Lease.Fence, short(ms(got.Lease.ExpiresIn)),
	)
	if got.Lease.Generation > 0 {
		a.complain("all parties are there: generation %d of the barrier", got.Lease.Generation)
	}
	a.warn(got.Warnings)
	if text := decisionText(got.Lease.Decision); text != "" {
		a.complain("%s", text)
	}
	if moved := got.Lease.Moved; len(moved) > 0 && got.Packet.Message == "" {
		a.complain(
			"others may have changed the documents that you read at %s: read them again before you act",
			clean(joinKeys(moved, ", ")),
		)
		got.Changed = false
	}
	a.tellDocuments(got.Documents)
	a.tellNotes(got.Changed, got.Packet, got.Notes)
}

// tellDocuments prints the documents at the keys of a lease on standard error.
func (a *app) tellDocuments(list []document) {
	for i := range list {
		d := &list[i]
		key := clean(string(d.Key))
		switch {
		case d.Absent && d.Op == "":
			a.complain("there is nothing at %s (version %s)", key, d.Version)
		case d.Absent:
			a.complain("there is nothing at %s: version %s removed it, %s", key, d.Version, d.writer())
		default:
			a.complain("%s is at version %s, %s", key, d.Version, d.writer())
		}
		for k := len(d.Earlier) - 1; k >= 0; k-- {
			how := d.Earlier[k].writer()
			if d.Earlier[k].Absent {
				how = "removed " + how
			}
			a.complain("  before: version %s, %s", d.Earlier[k].Version, how)
		}
		body, err := d.body()
		switch {
		case d.Truncated:
			a.complain("  it has %d bytes: interlock state get %s", d.Size, quote(string(d.Key)))
		case err != nil || d.Base64 != nil:
			a.complain("  %d bytes that are no text", d.Size)
		default:
			for line := range strings.SplitSeq(strings.TrimSpace(cleanLines(string(body))), "\n") {
				if line != "" {
					a.complain("  | %s", line)
				}
			}
		}
	}
}

// tellNotes prints to standard error what a new holder should know.
func (a *app) tellNotes(changed bool, what packet, notes []api.Note) {
	switch {
	case what.Message != "":
		a.tellPacket(what)
	case changed:
		a.complain("a possible writer held it while you waited: read it again before you decide")
	}
	for i := range notes {
		n := &notes[i]
		if text := clean(n.Text); text != "" {
			a.complain("note of %s (%s ago): %q", party{Agent: n.Agent}.name(), short(ms(n.Age)), text)
		}
	}
}

func newRenew(a *app) *cobra.Command {
	var progress string
	cmd := &cobra.Command{
		Use:   "renew [LEASE]",
		Short: "Renew a lease taken by lock",
		Long: `Renew a lease of "interlock lock"; without LEASE the one in $INTERLOCK_LEASE. Exit code 79
means that the lease is lost: write nothing more.

With --progress it also reports the progress of the work, for others to read. A lease with
--stall ends when no new progress is reported for so long, whether it was taken by lock or
by run: the command of a run reports it with this command too.`,
		Example: `  interlock renew --progress 3/5`,
		Args:    atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := leaseArg(args)
			if err != nil {
				return err
			}
			var got leaseAnswer
			r := request{
				Method: http.MethodPost, Path: leasePath(id, "renew"), Body: map[string]string{"progress": progress}, Again: true,
			}
			return a.call(cmd.Context(), r, &got, func() error {
				a.say("renewed: fence %s ends in %s\n", got.Lease.Fence, short(ms(got.Lease.ExpiresIn)))
				if next := asFlags(clean(got.Advice.Message)); next != "" {
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
		Short: "Release a lease, with a note for the next holder",
		Long: `Release a lease; without LEASE the one in $INTERLOCK_LEASE. Exit code 79 means that it was
lost before, so that another holder may have worked on the keys.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := leaseArg(args)
			if err != nil {
				return err
			}
			r := request{
				Method: http.MethodPost, Path: leasePath(id, "release"), Body: map[string]string{"outcome": outcome, "note": note},
				ID: freshID(), Again: true,
			}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("released\n")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "done", "the outcome, in a word")
	cmd.Flags().StringVar(&note, "note", "", "a note for the next holder")
	return cmd
}

// leaseArg is the lease that a command is about.
func leaseArg(args []string) (string, error) {
	if len(args) == 1 {
		return leaseFlag(args[0])
	}
	return leaseFlag("")
}

func leaseFlag(id string) (string, error) {
	if id == "" {
		id = os.Getenv("INTERLOCK_LEASE")
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
