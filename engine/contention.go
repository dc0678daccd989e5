package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// Statistics of the two strategies: to commit by version and think again after a conflict, or
// to take a lease first. They are kept for the keys of each pattern, and for each class of
// those that fit none, in namespaces with guarded state. All of them are volatile: they are for
// advice, and decide nothing.

func (c *Commit) committer(sess *store.Session) store.Committer {
	if sess != nil {
		return store.Committer{Session: sess.Num, Flow: flowOr(c.Flow)}
	}
	return store.Committer{Agent: c.Agent, Flow: c.Flow, Name: c.Actor}
}

// Contention returns how commits and leases fare, by pattern and class, in the order of
// their names.
func (e *Engine) Contention(ns interlock.Namespace) (list []interlock.Contention) {
	if s := e.Namespaces[ns]; s != nil {
		for _, name := range slices.Sorted(maps.Keys(s.Contended)) {
			list = append(list, s.Contended[name].Contention)
		}
	}
	return list
}

// reportCommitted counts a successful commit, under the keys that it was based on and those
// that it wrote under a lease, and reports with its answer how such commits fare. A write
// without a version or a lease never conflicts, nor does an addition: neither is counted.
func (c *Commit) reportCommitted(e *Engine, sess *store.Session, leases []*store.Request) {
	s, who := e.PendingWork.NS, c.committer(sess)
	if len(c.Writes) == 0 { // it was only a check
		return
	}
	var all, leased []*store.Contention
	add := func(key interlock.Key) {
		all = s.Among(all, key)
		if cover(leases, key) != nil {
			leased = s.Among(leased, key)
		}
	}
	for i := range c.Reads {
		if !c.Reads[i].Present { // which names no version
			add(c.Reads[i].Key)
		}
	}
	for i := range c.Writes {
		if w := &c.Writes[i]; w.Op != interlock.Add && (c.AsOf != 0 || cover(leases, w.Key) != nil) {
			add(w.Key)
		}
	}
	for _, k := range all {
		if slices.Contains(leased, k) {
			k.Count(&k.Leased)
		} else {
			k.Count(&k.Commits)
		}
		if i := slices.Index(k.Refused, who); i >= 0 {
			k.Refused = slices.Delete(k.Refused, i, i+1)
			k.Count(&k.Retries)
		}
	}
	e.reportContention(all)
}

// reportStale counts a commit that was refused as stale, and reports with its answer how such
// commits fare.
func (c *Commit) reportStale(e *Engine, sess *store.Session, list []interlock.Stale) {
	if len(c.Writes) == 0 {
		return
	}
	s, who := e.PendingWork.NS, c.committer(sess)
	var all []*store.Contention
	for i := range list {
		all = s.Among(all, list[i].Now.Key)
	}
	for _, k := range all {
		k.Count(&k.Conflicts)
		if !slices.Contains(k.Refused, who) {
			k.Refused = append(k.Refused, who)
			k.Refused = slices.Delete(k.Refused, 0, max(0, len(k.Refused)-store.MaxRefused))
		}
	}
	e.reportContention(all)
}

// reportContention adds the statistics with the most conflicts to the answer, if they are
// significant.
func (e *Engine) reportContention(all []*store.Contention) {
	var most *store.Contention
	for _, k := range all {
		if k.Seen() >= store.EnoughSeen && (most == nil || cmp.Less(most.Conflicts, k.Conflicts)) {
			most = k
		}
	}
	if most != nil {
		told := most.Contention
		e.out.Effects[e.replied].Contention = &told
	}
}
