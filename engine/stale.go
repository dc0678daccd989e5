package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// The reads of a commit that are stale.

// staleIn lists it in the order of the reads, then of the writes: at most
// interlock.MaxStale, and whether there is more.
func (e *Engine) staleIn(c *Commit, s *store.Documents) (list []interlock.Stale, more bool) {
	add := func(stale interlock.Stale) {
		if len(list) == interlock.MaxStale {
			more = true
			return
		}
		list = append(list, stale)
	}
	for i := range c.Reads {
		r := &c.Reads[i]
		switch d := s.Known[r.Key]; {
		case r.Present:
			if d.IsAbsent() {
				add(e.staleSincePresent(s, r.Key))
				continue
			}
		case r.Absent || r.Version == 0:
			if !d.IsAbsent() {
				add(e.staleSinceAbsent(d, r))
				continue
			}
		case s.VersionAt(r.Key) != r.Version:
			add(e.staleSince(s, r.Key, r.Version, true))
			continue
		}
		if c.AsOf > 0 && s.VersionAt(r.Key) > c.AsOf {
			add(e.staleSince(s, r.Key, c.AsOf, false))
		}
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		if c.AsOf > 0 && w.Op != interlock.Add && s.VersionAt(w.Key) > c.AsOf && !reads(c, w.Key) {
			add(e.staleSince(s, w.Key, c.AsOf, false))
		}
	}
	return list, more
}

// reads reports whether a key is among a commit's reads.
func reads(c *Commit, key interlock.Key) bool {
	return slices.ContainsFunc(c.Reads, func(r interlock.Read) bool { return r.Key == key })
}

// namesVersion reports whether a commit names the state of a key that it is based on.
func namesVersion(c *Commit, key interlock.Key) bool {
	return c.AsOf > 0 || slices.ContainsFunc(c.Reads, func(r interlock.Read) bool { return r.Key == key && !r.Present })
}

// staleSince returns how a key's state came from a version to what it is. With exactly,
// that version is the key's own, else one of the namespace.
func (e *Engine) staleSince(s *store.Documents, key interlock.Key, v interlock.Version, exactly bool) interlock.Stale {
	stale := interlock.Stale{Then: interlock.Document{Key: key, Version: v}, Now: e.present(s, key, true)}
	if x, known := s.AsOf(key, v); known && (x == nil || x.Version == v || !exactly) {
		stale.Then, stale.Known = e.showDocument(key, x, true), true
	}
	if d := s.Known[key]; d != nil {
		e.reportWrites(&stale, d, v)
	}
	return stale
}

// reportWrites adds the authors of a document after a version.
func (e *Engine) reportWrites(stale *interlock.Stale, d *store.Document, v interlock.Version) {
	if d.Now == nil || d.Now.Version <= v {
		return
	}
	between := d.EarlierSince(v)
	stale.Writes = 1 + len(between)
	for _, x := range between[max(0, len(between)-interlock.MaxBetween):] {
		stale.Between = append(stale.Between, e.showDocument(d.Key, x, false))
	}
}

// staleSinceAbsent is staleSince of a document that was not there when it was read.
func (e *Engine) staleSinceAbsent(d *store.Document, r *interlock.Read) interlock.Stale {
	since := r.Version
	for _, x := range d.Earlier {
		if x.Op == interlock.Delete {
			since = max(since, x.Version)
		}
	}
	stale := interlock.Stale{
		Then: interlock.Document{Key: d.Key, Version: r.Version, Absent: true}, Known: true,
		Now: e.showDocument(d.Key, d.Now, true),
	}
	e.reportWrites(&stale, d, since)
	return stale
}

// staleSincePresent is staleSince for a document that was only read as present.
func (e *Engine) staleSincePresent(s *store.Documents, key interlock.Key) interlock.Stale {
	stale := interlock.Stale{Then: interlock.Document{Key: key}, Now: e.present(s, key, true)}
	if d := s.Known[key]; d != nil {
		since := interlock.Version(0)
		for _, x := range d.Earlier {
			if x.Op != interlock.Delete {
				since = x.Version
			}
		}
		e.reportWrites(&stale, d, since)
	}
	return stale
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
