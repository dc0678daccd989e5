package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// Statistics of the two strategies: to commit by version and think again after a conflict, or
// to take a lease first. They are kept for the keys of each pattern, and for each class of
// those that fit none, in namespaces with guarded state. All of them are volatile: they are for
// advice, and decide nothing.

const (
	// fadeAt is the maximum of the counts. A count that passes it halves all counts of its
	// pattern, so that older events count for less and less.
	fadeAt = 1 << 16

	// enoughSeen is how many commits and leases must have been seen to tell about them.
	enoughSeen = 20

	// maxRefused bounds the callers of a pattern that are remembered because their last commit
	// was refused; the oldest is forgotten first.
	maxRefused = 64
)

// contention is the statistics of one pattern or class.
type contention struct {
	interlock.Contention
	refused []committer // callers after a commit that was refused as stale, the oldest first
}

// committer identifies the caller of a commit, as far as possible.
type committer struct {
	session     uint64
	flow        string
	agent, name string // of a caller without a session: the agent that it names, and its principal
}

func (c *Commit) committer(sess *session) committer {
	if sess != nil {
		return committer{session: sess.num, flow: flowOr(c.Flow)}
	}
	return committer{agent: c.Agent, flow: c.Flow, name: c.Actor}
}

// Contention returns how commits and leases fare, by pattern and class, in the order of
// their names.
func (e *Engine) Contention(ns interlock.Namespace) (list []interlock.Contention) {
	if s := e.spaces[ns]; s != nil {
		for _, name := range slices.Sorted(maps.Keys(s.contended)) {
			list = append(list, s.contended[name].Contention)
		}
	}
	return list
}

// contention returns the statistics of the pattern or the class of a key, nil if there are too
// many.
func (s *namespace) contention(key interlock.Key) *contention {
	name, write := keypath.Class(string(key)), interlock.WriteGuarded
	if p := s.policyAt(string(key)); p != nil {
		name, write = p.Name, p.Write
	}
	k := s.contended[name]
	if k == nil && len(s.contended) < maxClasses {
		if s.contended == nil {
			s.contended = map[string]*contention{}
		}
		k = &contention{Contention: interlock.Contention{Pattern: name}}
		s.contended[name] = k
	}
	if k != nil {
		k.Write = write
	}
	return k
}

// among adds the key's contention to a list, once.
func (s *namespace) among(list []*contention, key interlock.Key) []*contention {
	if k := s.contention(key); k != nil && !slices.Contains(list, k) {
		list = append(list, k)
	}
	return list
}

// reportCommitted counts a successful commit, under the keys that it was based on and those
// that it wrote under a lease, and reports with its answer how such commits fare. A write
// without a version or a lease never conflicts, nor does an addition: neither is counted.
func (e *Engine) reportCommitted(c *Commit, sess *session, leases []*request) {
	s, who := e.pendingWork.ns, c.committer(sess)
	if len(c.Writes) == 0 { // it was only a check
		return
	}
	var all, leased []*contention
	add := func(key interlock.Key) {
		all = s.among(all, key)
		if cover(leases, key) != nil {
			leased = s.among(leased, key)
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
			k.count(&k.Leased)
		} else {
			k.count(&k.Commits)
		}
		if i := slices.Index(k.refused, who); i >= 0 {
			k.refused = slices.Delete(k.refused, i, i+1)
			k.count(&k.Retries)
		}
	}
	e.reportContention(all)
}

// reportStale counts a commit that was refused as stale, and reports with its answer how such
// commits fare.
func (e *Engine) reportStale(c *Commit, sess *session, list []interlock.Stale) {
	if len(c.Writes) == 0 {
		return
	}
	s, who := e.pendingWork.ns, c.committer(sess)
	var all []*contention
	for i := range list {
		all = s.among(all, list[i].Now.Key)
	}
	for _, k := range all {
		k.count(&k.Conflicts)
		if !slices.Contains(k.refused, who) {
			k.refused = append(k.refused, who)
			k.refused = slices.Delete(k.refused, 0, max(0, len(k.refused)-maxRefused))
		}
	}
	e.reportContention(all)
}

// reportContention adds the statistics with the most conflicts to the answer, if they are
// significant.
func (e *Engine) reportContention(all []*contention) {
	var most *contention
	for _, k := range all {
		if k.seen() >= enoughSeen && (most == nil || cmp.Less(most.Conflicts, k.Conflicts)) {
			most = k
		}
	}
	if most != nil {
		told := most.Contention
		e.out.Effects[e.replied].Contention = &told
	}
}

// noteGrant counts a new lease that may write.
func (r *request) noteGrant(waited bool) {
	s := r.ns
	if s.docs.version == 0 || r.share != nil {
		return
	}
	var all []*contention
	for _, c := range r.claims() {
		if lockmode.Writing.Has(c.Mode) {
			all = s.among(all, c.Key)
		}
	}
	for _, k := range all {
		k.count(&k.Leases)
		if waited {
			k.count(&k.Waited)
		}
	}
}

func (k *contention) counts() [6]*uint64 {
	return [...]*uint64{&k.Commits, &k.Conflicts, &k.Retries, &k.Leased, &k.Leases, &k.Waited}
}

// seen is how much there is to judge from.
func (k *contention) seen() uint64 { return k.Commits + k.Conflicts + k.Leased + k.Leases }

// count adds one to one of k's counts.
func (k *contention) count(n *uint64) {
	if *n++; *n > fadeAt {
		for _, n := range k.counts() {
			*n /= 2
		}
	}
}
