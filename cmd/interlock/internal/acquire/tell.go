package acquire

import (
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// Tell prints a lease so that a shell can read it, and what its holder should know besides on
// standard error. how names what has become of it.
func Tell(a *cli.App, how string, got *view.LeaseAnswer) {
	a.Say("export INTERLOCK_LEASE=%s\nexport INTERLOCK_FENCE=%s\nexport INTERLOCK_KEYS=%s\n",
		cli.Quote(got.Lease.ID), got.Lease.Fence, cli.Quote(view.JoinKeys(view.ClaimedKeys(got.Lease.Claims), "\n")))
	if got.Documents != nil {
		a.Say("export INTERLOCK_AS_OF=%s\n", got.AsOf)
	}
	a.Complain(
		"%s under fence %s; it ends in %s unless it is renewed", how, got.Lease.Fence,
		cli.ShortMillis(got.Lease.ExpiresIn),
	)
	if got.Lease.Generation > 0 {
		a.Complain("all parties are there: generation %d of the barrier", got.Lease.Generation)
	}
	a.Warn(got.Warnings)
	if text := view.DecisionText(got.Lease.Decision); text != "" {
		a.Complain("%s", text)
	}
	if moved := got.Lease.Moved; len(moved) > 0 && got.Packet == nil {
		a.Complain(
			"others may have changed the documents that you read at %s: read them again before you act",
			cli.Clean(view.JoinKeys(moved, ", ")),
		)
		got.Changed = false
	}
	tellDocuments(a, got.Documents)
	view.TellNotes(a, got.Changed, got.Packet, got.Notes)
}

// tellDocuments prints the documents at the keys of a lease on standard error.
func tellDocuments(a *cli.App, list []api.Document) {
	for i := range list {
		d := &list[i]
		key, written := cli.Clean(string(d.Key)), view.Written(&d.DocumentInfo, d.Age)
		switch {
		case d.Absent && d.Op == "":
			a.Complain("there is nothing at %s (version %s)", key, d.Version)
		case d.Absent:
			a.Complain("there is nothing at %s: version %s removed it, %s", key, d.Version, written)
		default:
			a.Complain("%s is at version %s, %s", key, d.Version, written)
		}
		for k := len(d.Earlier) - 1; k >= 0; k-- {
			e := &d.Earlier[k]
			how := view.Written(&e.DocumentInfo, e.Age)
			if e.Absent {
				how = "removed " + how
			}
			a.Complain("  before: version %s, %s", cli.Clean(e.Version), how)
		}
		body, err := view.Body(&d.DocumentBody)
		switch {
		case d.Truncated:
			a.Complain("  it has %d bytes: interlock state get %s", view.Size(&d.DocumentInfo), cli.Quote(string(d.Key)))
		case err != nil || d.Base64 != nil:
			a.Complain("  %d bytes that are no text", view.Size(&d.DocumentInfo))
		default:
			for line := range strings.SplitSeq(strings.TrimSpace(cli.CleanLines(string(body))), "\n") {
				if line != "" {
					a.Complain("  | %s", line)
				}
			}
		}
	}
}
