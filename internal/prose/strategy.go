package prose

import (
	"fmt"

	"github.com/interlockdev/interlock"
)

// There are two strategies against working on what another changes meanwhile: to commit by version
// and to think again when another was faster, or to take the lease before reading. Which one costs
// less depends on how often two meet. From here on the other one is advised.
const (
	// enoughCommits is how many commits, by version or in the name of leases, must have
	// been seen.
	enoughCommits = 20

	// One commit in conflictsOften is refused as stale: a thought in four is thought
	// twice, which costs more than standing in line.
	conflictsOften = 4

	// At most one lease in waitsRare was waited for: conflicts are so rare that commits by
	// version would hardly ever be repeated.
	waitsRare = 20
)

// ForContention names the better strategy for the keys of a pattern, or nothing. Where the pattern
// demands a lease, no caller is advised to do without.
func ForContention(c *interlock.Contention) interlock.Advice {
	tried := c.Commits + c.Conflicts
	switch {
	case tried >= enoughCommits && c.Conflicts*conflictsOften >= tried:
		return interlock.Advice{Action: interlock.ActWait, Message: fmt.Sprintf(
			"%d of %d commits by version to %s were stale: acquire the key before you read it, so that no work is wasted",
			c.Conflicts, tried, contended(c),
		)}
	case c.Write != interlock.WriteLease && c.Leased >= enoughCommits && c.Waited*waitsRare <= c.Leases &&
		!conflictsMuch(c):
		return interlock.Advice{Action: interlock.ActRetry, Message: fmt.Sprintf(
			"%d of %d leases of %s had to wait: conflicts are rare, so read without a lease, commit by version, and decide "+
				"again in the rare case of a stale commit",
			c.Waited, c.Leases, contended(c),
		)}
	}
	return interlock.Advice{}
}

// conflictsMuch reports whether the few that commit by version meet often although leases are
// hardly waited for: then the leases are what keeps the others apart.
func conflictsMuch(c *interlock.Contention) bool {
	return c.Conflicts*conflictsOften >= c.Commits+c.Conflicts && c.Conflicts > 0
}

// contended names the keys of a count.
func contended(c *interlock.Contention) string {
	if c.Pattern == "" {
		return "such keys"
	}
	return quoteUnlessPlain(c.Pattern) + " keys"
}
