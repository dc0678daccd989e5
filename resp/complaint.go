package resp

import (
	"sync"
	"time"
)

// complaints bound the lines of the log about programs that do what the door cannot do for them.
type complaints struct {
	mu    sync.Mutex
	told  map[string]struct{}
	since time.Time
}

const (
	// complaintsPause is how long one complaint is not repeated.
	complaintsPause = 10 * time.Minute
	// mostComplaints bounds the lines in that time. The metric counts all.
	mostComplaints = 100
)

// isNew reports whether a complaint is not in the log yet.
func (c *complaints) isNew(what string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil || now.Sub(c.since) >= complaintsPause {
		c.told, c.since = map[string]struct{}{}, now
	}
	if _, known := c.told[what]; known || len(c.told) >= mostComplaints {
		return false
	}
	c.told[what] = struct{}{}
	return true
}

// complain counts that a program was refused what Redis would have done, and writes it to the log, the same about the
// same thing once in a while.
func (c *client) complain(reason, thing, text string, attributes ...any) {
	c.caller.RefusedAsRedis(reason)
	if c.door.told.isNew(c.owner()+" "+reason+" "+thing, time.Now()) {
		attributes = append(attributes, "client", c.agent(), "namespace", c.caller.Namespace(), "page", "docs/redis.md")
		c.door.cfg.Log.Warn(text, attributes...)
	}
}
