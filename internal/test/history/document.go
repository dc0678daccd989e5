package history

import (
	"cmp"
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
)

// change is a commit that happened: a client knows its version, or saw its writes.
type change struct {
	version interlock.Version
	op      *Op
	floor   interlock.Index // it was made after this one
}

// documentModel is the documents of the namespace, while the answers pass in the order of
// their indexes.
type documentModel struct {
	*verdict
	changes []*change // not yet made, by version
	made    int
	newest  interlock.Version
	docs    map[string]Doc
	unseen  []*Op // commits of unknown outcome without a known reader
	later   []*Op // the answers that have not passed
	floor   map[*Op]interlock.Index
}

// documents feeds the answers to the model. Commits happen in the order of their versions,
// without gaps: when an answer shows one, all lower ones have happened, and a version without
// an account is one of the commits without a trace.
func (v *verdict) documents() {
	m := &documentModel{verdict: v, docs: map[string]Doc{}}
	m.gather()
	answers := v.answered()
	for i, op := range answers {
		m.later = answers[i:]
		m.step(op)
	}
}

// gather finds every commit that an answer tells of.
func (m *documentModel) gather() {
	m.floor = floors(m.ops)
	byID, byVersion := map[string]*Op{}, map[interlock.Version]*change{}
	counters := map[string][]*Op{} // open ones, by the counters that they add to
	found := map[*Op]interlock.Version{}
	for _, op := range m.ops {
		if len(op.Writes) == 0 {
			continue
		}
		byID[op.ID] = op
		for _, w := range op.Writes {
			if w.Add != 0 && op.Open() {
				counters[w.Key] = append(counters[w.Key], op)
			}
		}
	}
	tell := func(op *Op, version interlock.Version, by *Op) {
		if was, known := found[op]; known && was != version {
			m.problem("an effect happened twice: %v has version %d, and version %d in %v", op, was, version, by)
		}
		found[op] = version
		if was := byVersion[version]; was != nil && was.op != op {
			m.problem("version %d was given twice: to %v and to %v", version, was.op, op)
			return
		}
		byVersion[version] = &change{version, op, m.floor[op]}
	}
	for _, op := range m.ops {
		if len(op.Writes) > 0 && op.OK() {
			tell(op, op.Version, op)
		}
	}
	for _, op := range m.ops {
		for _, d := range op.Docs {
			switch {
			case d.Request != "" && byID[d.Request] != nil:
				tell(byID[d.Request], d.Version.Version, op)
			case d.Request != "":
				m.problem("a document that nobody wrote: %s in %v", d.Request, op)
			case d.Count != 0 && byVersion[d.Version.Version] == nil:
				open := slices.DeleteFunc(slices.Clone(counters[d.Key]), func(op *Op) bool { _, known := found[op]; return known })
				if len(open) == 0 {
					m.problem("a counter that nobody added to: %s has version %d in %v", d.Key, d.Version.Version, op)
					continue
				}
				tell(open[0], d.Version.Version, op)
			}
		}
	}
	for _, op := range m.ops {
		if _, known := found[op]; !known && byID[op.ID] == op && op.Open() {
			m.unseen = append(m.unseen, op)
		}
	}
	m.changes = slices.SortedFunc(
		maps.Values(byVersion), func(a, b *change) int { return cmp.Compare(a.version, b.version) },
	)
}

// step compares one answer with the model.
func (m *documentModel) step(op *Op) {
	switch {
	case op.Kind == Read && op.OK():
		if m.newest > op.Version {
			m.problem("a stale read: %v as of version %d, and version %d is there", op, op.Version, m.newest)
			return
		}
		m.make(op.Version, op)
		m.missing(op)
		for _, d := range op.Docs {
			if is := m.docs[d.Key]; is.Version.Version != d.Version.Version || is.Request != d.Request || is.Count != d.Count {
				m.problem("a document is not what was written: %v reads %+v, and it is %+v", op, d, is)
			}
		}
	case op.OK() && len(op.Writes) > 0:
		if op.exact() && m.newest >= op.Version {
			m.problem("a version that is not new: %v made version %d, and version %d is there", op, op.Version, m.newest)
		}
		m.make(op.Version, op)
	case op.Code == interlock.CodeStale:
		m.refused(op)
	}
}

// make makes all changes up to a version: at the latest now.
func (m *documentModel) make(version interlock.Version, by *Op) {
	for ; len(m.changes) > 0 && m.changes[0].version <= version; m.changes = m.changes[1:] {
		c := m.changes[0]
		if c.floor >= by.Index {
			m.problem(
				"a change before it was asked for: %v was sent after index %d was known, and %v shows it", c.op, c.floor, by,
			)
		}
		for _, r := range c.op.Reads {
			if is := m.docs[r.Key]; is.Version.Version != r.Version {
				m.problem(
					"a lost update: %v was made on version %d of %s, which had version %d", c.op, r.Version, r.Key,
					is.Version.Version,
				)
			}
		}
		m.write(c)
	}
}

// write writes what a commit writes, but not over what a later one has written.
func (m *documentModel) write(c *change) {
	for _, w := range c.op.Writes {
		is := m.docs[w.Key]
		if is.Version.Version > c.version {
			continue
		}
		d := Doc{Version: Version{w.Key, c.version}, Request: c.op.ID}
		if w.Add != 0 {
			d.Request, d.Count = "", is.Count+w.Add
		}
		m.docs[w.Key] = d
	}
	m.made++
	m.newest = max(m.newest, c.version)
}

// missing checks that no more versions are unaccounted for than there are commits that
// can have made them.
func (m *documentModel) missing(op *Op) {
	could := 0
	for _, open := range m.unseen {
		if open.Call < op.Return {
			could++
		}
	}
	if lost := int(op.Version) - m.made; lost > could {
		m.problem(
			"%v shows version %d: %d versions are nobody's, and only %d commits without an answer can have made them", op,
			op.Version, lost, could,
		)
	}
}

// refused takes a commit that was refused because what it read has changed, with the
// versions as they are.
func (m *documentModel) refused(op *Op) {
	if len(op.Stale) == 0 {
		m.problem("refused as stale, and nothing is: %v", op)
	}
	for _, s := range op.Stale {
		m.make(s.Version, op)
		if m.docs[s.Key].Version.Version < s.Version {
			m.infer(s, op)
		}
		if is := m.docs[s.Key].Version.Version; is != s.Version {
			m.problem("a refusal shows version %d of %s, which has version %d: %v", s.Version, s.Key, is, op)
		}
		if slices.Contains(op.Reads, s) {
			m.problem("refused as stale, and version %d of %s is what was read: %v", s.Version, s.Key, op)
		}
	}
}

// infer finds a commit without an answer and without a reader, when a refusal shows its version: one that no later
// answer contradicts. What then remains looks alike to every client.
func (m *documentModel) infer(s Version, by *Op) {
	i := slices.IndexFunc(m.unseen, func(op *Op) bool {
		writes := func(key string) bool {
			return slices.ContainsFunc(op.Writes, func(w Write) bool { return w.Key == key })
		}
		current := func(r Version) bool {
			is := m.docs[r.Key].Version.Version
			return is == r.Version || is > s.Version
		}
		for _, other := range by.Stale {
			if other.Version == s.Version && !writes(other.Key) {
				return false
			}
		}
		return op.Call < by.Return && m.floor[op] < by.Index &&
			!slices.ContainsFunc(op.Reads, func(r Version) bool { return !current(r) }) && !m.contradicted(op, s.Version)
	})
	if i >= 0 {
		m.write(&change{s.Version, m.unseen[i], m.floor[m.unseen[i]]})
		m.unseen = slices.Delete(m.unseen, i, i+1)
	}
}

// contradicted reports whether an answer from now on shows an older version of something that a commit would have
// written at a version.
func (m *documentModel) contradicted(op *Op, at interlock.Version) bool {
	older := func(shown Version) bool {
		return shown.Version < at && slices.ContainsFunc(op.Writes, func(w Write) bool { return w.Key == shown.Key })
	}
	return slices.ContainsFunc(m.later, func(answer *Op) bool {
		return slices.ContainsFunc(answer.Stale, older) ||
			slices.ContainsFunc(answer.Docs, func(d Doc) bool { return older(d.Version) })
	})
}
