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

// Lease is a lease as its holder sees it.
type Lease struct {
	ID         string            `json:"id"`
	Fence      interlock.Fence   `json:"fence,string"`
	Claims     []Claim           `json:"claims"`
	Holder     cli.Party         `json:"holder"`
	Purpose    string            `json:"purpose"`
	TTL        int64             `json:"ttl_ms"`
	Grace      int64             `json:"grace_ms"`
	ExpiresIn  int64             `json:"expires_in_ms"`
	MaxHoldIn  int64             `json:"max_hold_in_ms"`
	StallIn    int64             `json:"stall_in_ms"`
	LockDelay  int64             `json:"lock_delay_ms"`
	Group      string            `json:"group"`
	State      string            `json:"state"`
	EndedBy    string            `json:"ended_by"`
	Moved      []interlock.Key   `json:"moved"`
	Yield      *cli.YieldRequest `json:"yield"`
	Parking    *api.Parking      `json:"parking"`
	Decision   *api.Decision     `json:"decision"`
	Generation uint64            `json:"generation"`
	Parts      []api.HeldPart    `json:"parts"`
}

// What are the keys of a lease.
func (l *Lease) What() string {
	keys := make([]string, len(l.Claims))
	for i, c := range l.Claims {
		keys[i] = cli.Clean(string(c.Key))
	}
	return strings.Join(keys, ", ")
}

// ParkedLease is a parked lease as others see it.
type ParkedLease struct {
	cli.Party
	Claims  []Claim         `json:"claims"`
	Fence   interlock.Fence `json:"fence,string"`
	Parking api.Parking     `json:"parking"`
}

// DecisionText is a decision in half a sentence, or nothing.
func DecisionText(d *api.Decision) string {
	if d == nil {
		return ""
	}
	return prose.Verdict(d.Verdict, d.Principal, d.By, d.Reason)
}

// LeaseAnswer is the result of a request for a lease.
type LeaseAnswer struct {
	Outcome  string       `json:"outcome"`
	Lease    Lease        `json:"lease"`
	Changed  bool         `json:"changed"`
	Notes    []api.Note   `json:"notes"`
	Packet   Packet       `json:"packet"`
	Ticket   api.Ticket   `json:"ticket"`
	Key      string       `json:"key"`
	Holders  []cli.Holder `json:"holders"`
	Advice   cli.Advice   `json:"advice"`
	Warnings []string     `json:"warnings"`

	Documents []Document        `json:"documents"` // if they were asked for
	AsOf      interlock.Version `json:"as_of,string"`
}

// Packet describes the changes, in words that are ready for a prompt.
type Packet struct {
	Message string `json:"message"`
}

// Waiter is a request that stands in line for a key.
type Waiter struct {
	cli.Party
	Purpose string `json:"purpose"`
	Mode    string `json:"mode"`
	cli.Amount
	Priority int   `json:"priority"`
	Position int   `json:"position"`
	Waited   int64 `json:"waited_ms"`
	ETA      int64 `json:"eta_ms"`
	Offered  bool  `json:"offered"`
}

// Key is a key with its holders and its line.
type Key struct {
	Key        interlock.Key   `json:"key"`
	State      string          `json:"state"`
	Holders    []cli.Holder    `json:"holders"`
	More       int             `json:"more_holders"`
	Waiters    []Waiter        `json:"waiters"`
	Length     int             `json:"length"`
	FenceFloor interlock.Fence `json:"fence_floor,string"`
	Notes      []api.Note      `json:"notes"`
	HoldTime   int64           `json:"hold_time_ms"`
	Pattern    string          `json:"pattern"`
	Capacity   *cli.Capacity   `json:"capacity"`
	Generation uint64          `json:"generation"`
	Broken     bool            `json:"broken"`
	Part       *struct {
		Resource string        `json:"resource"`
		Parts    int           `json:"parts"`
		Key      interlock.Key `json:"key"`
		Holder   *cli.Holder   `json:"holder"`
	} `json:"part"`
}

// Keys is a page of the keys that are held or waited for.
type Keys struct {
	Keys []struct {
		Key     interlock.Key `json:"key"`
		State   string        `json:"state"`
		Holders []cli.Holder  `json:"holders"`
		More    int           `json:"more_holders"`
		Length  int           `json:"length"`
	} `json:"keys"`
	Cursor string `json:"cursor"`
}

// Stale returns what changed, if that is why something was refused.
func Stale(a *cli.App, answer []byte, err error) error {
	var problem struct{ Packet Packet }
	if json.Unmarshal(answer, &problem) == nil && problem.Packet.Message != "" {
		tellPacket(a, problem.Packet)
		return cli.ExitWith(cli.ExitCode(err), nil)
	}
	return err
}

// tellPacket prints to standard error what changed.
func tellPacket(a *cli.App, p Packet) {
	fmt.Fprintln(a.Err, strings.TrimSpace(cli.CleanLines(p.Message)))
}

// TellNotes prints to standard error what a new holder should know.
func TellNotes(a *cli.App, changed bool, what Packet, notes []api.Note) {
	switch {
	case what.Message != "":
		tellPacket(a, what)
	case changed:
		a.Complain("a possible writer held it while you waited: read it again before you decide")
	}
	for i := range notes {
		n := &notes[i]
		if text := cli.Clean(n.Text); text != "" {
			a.Complain("note of %s (%s ago): %q", cli.Party{Agent: n.Agent}.Name(), cli.Short(cli.Millis(n.Age)), text)
		}
	}
}

// LeaseArg is the lease that a command is about.
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

// LeasePath is where something is done with a lease, or without an action the lease.
func LeasePath(id, action string) string {
	path := "/v1/leases/" + url.PathEscape(id)
	if action != "" {
		path += "/" + action
	}
	return path
}
