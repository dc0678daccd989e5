package client

import (
	"time"
)

// RunRequest is a workflow's run that is to be admitted.
type RunRequest struct {
	Org      string
	Workflow string
	Purpose  string
	Priority int

	TTL     time.Duration // 0: the pattern's, else the session's
	MaxHold time.Duration // 0: no cap
	// MaxWait is how long it may stand in line for a permit. 0 means
	// interlock.DefaultRunWait; below 0 a full house is refused at once.
	MaxWait time.Duration

	// ID makes it one run however often it is started by this client: the same ID gets
	// the same run as long as its lease lives. A refusal is not remembered. "": a run of
	// its own.
	ID string
}
