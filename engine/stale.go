package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// The reads of a commit that are stale.

// namesVersion reports whether a commit names the state of a key that it is based on.
func namesVersion(c *Commit, key interlock.Key) bool {
	return c.AsOf > 0 || slices.ContainsFunc(c.Reads, func(r interlock.Read) bool { return r.Key == key && !r.Present })
}

// refuseStale refuses a commit with the list of stale documents.
func (e *Engine) refuseStale(list []interlock.Stale, more bool) {
	first := &list[0]
	var rest *message.Text
	words := message.New(message.HasVersion, message.Str(first.Now.Key), message.Num(first.Now.Version))
	switch {
	case first.Now.Absent && first.Now.Op == 0:
		words = message.New(message.NothingThere, message.Str(first.Now.Key))
	case first.Now.Absent:
		words = message.New(message.NotThereAnyMore, message.Str(first.Now.Key))
	}
	if others := len(list) - 1; more {
		rest = message.New(message.AndMoreThanOthers, message.Num(others))
	} else if others > 0 {
		rest = message.New(message.AndOthersChanged, message.Num(others))
	}
	eff := e.refuse(interlock.CodeStale, message.New(message.Stale, message.Sub(words), message.Sub(rest)))
	eff.Stale, eff.StaleMore = list, more
	eff.Conflict = &store.Conflict{Conflict: interlock.Conflict{Key: first.Now.Key, Kind: interlock.VersionMoved}}
}
