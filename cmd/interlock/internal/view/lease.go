package view

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// DecisionText is a decision in half a sentence, or nothing.
func DecisionText(d *api.Decision) string {
	if d == nil {
		return ""
	}
	return prose.Verdict(d.Verdict, d.Principal, d.By, d.Reason)
}

// LeaseAnswer is the result of a request for a lease: the lease, or a place in line with the holders
// that block it.
type LeaseAnswer struct {
	api.Granted
	Ticket  api.Ticket   `json:"ticket"`
	Key     api.Key      `json:"key"`
	Holders []api.Holder `json:"holders"`
}

// Stale prints what changed if the refusal is for a stale read, and returns the error to exit with.
func Stale(a *cli.App, answer []byte, err error) error {
	var problem api.ProblemDocument
	if json.Unmarshal(answer, &problem) == nil && tellPacket(a, problem.Packet) {
		return cli.ExitWith(cli.ExitCode(err), nil)
	}
	return err
}

// tellPacket prints to standard error what changed, and reports whether anything did.
func tellPacket(a *cli.App, p *api.Packet) bool {
	if p == nil || p.Message == "" {
		return false
	}
	fmt.Fprintln(a.Err, strings.TrimSpace(cli.CleanLines(p.Message)))
	return true
}

// TellNotes prints to standard error what a new holder should know.
func TellNotes(a *cli.App, changed bool, what *api.Packet, notes []api.Note) {
	if !tellPacket(a, what) && changed {
		a.Complain("a possible writer held it while you waited: read it again before you decide")
	}
	for i := range notes {
		n := &notes[i]
		if text := cli.Clean(n.Text); text != "" {
			a.Complain("note of %s (%s ago): %q", cli.AgentName(api.Name{Agent: n.Agent}), cli.ShortMillis(n.Age), text)
		}
	}
}

// LeaseArg returns the lease that a command is about.
func LeaseArg(args []string) (string, error) {
	if len(args) == 1 {
		return LeaseFlag(args[0])
	}
	return LeaseFlag("")
}

// LeaseFlag returns the lease that a flag names, else the one of $INTERLOCK_LEASE.
func LeaseFlag(id string) (string, error) {
	if id == "" {
		id = os.Getenv("INTERLOCK_LEASE")
	}
	if id == "" {
		return "", cli.Usagef("name the lease, or set INTERLOCK_LEASE as `interlock lock` prints it")
	}
	if _, err := interlock.ParseLeaseID(id); err != nil {
		// The text is a secret if it is nearly right, so it is not repeated.
		return "", cli.Usagef("that is no lease: want l_ and 32 hexadecimal digits, as `interlock lock` prints it")
	}
	return id, nil
}

// LeasePath returns the path of an action on a lease, or without an action the path of the lease.
func LeasePath(id, action string) string {
	path := "/v1/leases/" + url.PathEscape(id)
	if action != "" {
		path += "/" + action
	}
	return path
}
