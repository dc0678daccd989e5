package engine

import (
	"github.com/interlockdev/interlock"
)

// Log returns entries of a key's log from a number on, at most max (0: 100), and at most as
// much text as fits an answer. first is the oldest entry that is kept, and next comes after the
// last one returned: a caller that continues from there misses nothing. If no entries are kept,
// both are the number of the next one.
func (e *Engine) Log(
	ns interlock.Namespace, key interlock.Key, from uint64, limit int,
) (entries []LogEntry, first, next uint64) {
	s := e.turnTo(ns)
	if s == nil {
		return nil, 1, 1
	}
	_, key = s.Fit(key)
	l := s.Logs.Known[key]
	if l == nil {
		return nil, s.Logs.Floor + 1, s.Logs.Floor + 1
	}
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, interlock.MaxLogEntries)
	first = l.Oldest()
	next = min(max(from, first), l.Next())
	for size := 0; next < l.Next() && len(entries) < limit; next++ {
		x := l.Entries.At(int(next - first))
		if size += x.Cost(); len(entries) > 0 && size > interlock.MaxReadBytes {
			break
		}
		entries = append(entries, x.Show(&s.Documents, e.Clock))
	}
	return entries, first, next
}
