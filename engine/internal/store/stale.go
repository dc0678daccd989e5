package store

import (
	"slices"

	"github.com/interlockdev/interlock"
)

// Stale lists the reads of a commit that are stale, then its writes that are, in their order: at most
// interlock.MaxStale. more reports whether there are more.
func (s *Documents) Stale(c *interlock.CommitRequest, now Time) (list []interlock.Stale, more bool) {
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
				add(s.sincePresent(r.Key, now))
				continue
			}
		case r.Absent || r.Version == 0:
			if !d.IsAbsent() {
				add(d.sinceAbsent(r, now))
				continue
			}
		case s.VersionAt(r.Key) != r.Version:
			add(s.since(r.Key, r.Version, true, now))
			continue
		}
		if c.AsOf > 0 && s.VersionAt(r.Key) > c.AsOf {
			add(s.since(r.Key, c.AsOf, false, now))
		}
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		if c.AsOf > 0 && w.Op != interlock.Add && s.VersionAt(w.Key) > c.AsOf && !ReadsKey(c, w.Key) {
			add(s.since(w.Key, c.AsOf, false, now))
		}
	}
	return list, more
}

// ReadsKey reports whether a key is among a commit's reads.
func ReadsKey(c *interlock.CommitRequest, key interlock.Key) bool {
	return slices.ContainsFunc(c.Reads, func(r interlock.Read) bool { return r.Key == key })
}

// since compares a key's document with its state at version v. If exactly is set, v is the key's own
// version, else the namespace's.
func (s *Documents) since(key interlock.Key, v interlock.Version, exactly bool, now Time) interlock.Stale {
	stale := interlock.Stale{Then: interlock.Document{Key: key, Version: v}, Now: s.Show(key, true, now)}
	if x, known := s.AsOf(key, v); known && (x == nil || x.Version == v || !exactly) {
		stale.Then, stale.Known = x.Show(key, true, now), true
	}
	if d := s.Known[key]; d != nil {
		d.addWrites(&stale, v, now)
	}
	return stale
}

// addWrites adds the authors of the document's versions after v to stale.
func (d *Document) addWrites(stale *interlock.Stale, v interlock.Version, now Time) {
	if d.Now == nil || d.Now.Version <= v {
		return
	}
	between := d.EarlierSince(v)
	stale.Writes = 1 + len(between)
	for _, x := range between[max(0, len(between)-interlock.MaxBetween):] {
		stale.Between = append(stale.Between, x.Show(d.Key, false, now))
	}
}

// sinceAbsent describes the changes of a document that was absent when it was read.
func (d *Document) sinceAbsent(r *interlock.Read, now Time) interlock.Stale {
	since := r.Version
	for _, x := range d.Earlier {
		if x.Op == interlock.Delete {
			since = max(since, x.Version)
		}
	}
	stale := interlock.Stale{
		Then: interlock.Document{Key: d.Key, Version: r.Version, Absent: true}, Known: true,
		Now: d.Now.Show(d.Key, true, now),
	}
	d.addWrites(&stale, since, now)
	return stale
}

// sincePresent describes the changes of a document that was only read as present, and is absent now.
func (s *Documents) sincePresent(key interlock.Key, now Time) interlock.Stale {
	stale := interlock.Stale{Then: interlock.Document{Key: key}, Now: s.Show(key, true, now)}
	if d := s.Known[key]; d != nil {
		since := interlock.Version(0)
		for _, x := range d.Earlier {
			if x.Op != interlock.Delete {
				since = x.Version
			}
		}
		d.addWrites(&stale, since, now)
	}
	return stale
}
