package store

const (
	// fadeAt is the maximum of the counts. A count that passes it halves all counts of its
	// pattern, so that older events count for less and less.
	fadeAt = 1 << 16

	// EnoughSeen is how many commits and leases must have been seen to tell about them.
	EnoughSeen = 20

	// MaxRefused bounds the callers of a pattern that are remembered because their last commit
	// was refused; the oldest is forgotten first.
	MaxRefused = 64
)

// Committer identifies the caller of a commit, as far as possible.
type Committer struct {
	Session     uint64
	Flow        string
	Agent, Name string // of a caller without a session: the agent that it names, and its principal
}

func (k *Contention) counts() [6]*uint64 {
	return [...]*uint64{&k.Commits, &k.Conflicts, &k.Retries, &k.Leased, &k.Leases, &k.Waited}
}

// Seen is how much there is to judge from.
func (k *Contention) Seen() uint64 { return k.Commits + k.Conflicts + k.Leased + k.Leases }
