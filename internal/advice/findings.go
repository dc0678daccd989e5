package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/prose"
)

// Result returns what was learned.
func (r *Reducer) Result() *Result {
	res := &Result{Left: r.left}
	found := append(r.orders(), r.aboutKeys()...)
	found = append(found, r.aboutClasses()...)
	found = append(found, r.aboutPatterns()...)
	slices.SortStableFunc(found, func(a, b Advice) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), cmp.Compare(b.Deadlocks, a.Deadlocks),
			cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Namespace, b.Namespace),
			slices.Compare(a.Keys, b.Keys),
		)
	})
	of := map[Kind]int{}
	for i := range found {
		if of[found[i].Kind]++; of[found[i].Kind] <= MaxOfKind {
			found[i].describe()
			res.Advice = append(res.Advice, found[i])
		}
	}
	return res
}

// aboutKeys finds keys that are too coarse, and hot ones.
func (r *Reducer) aboutKeys() (list []Advice) {
	for p, k := range r.keys {
		a := Advice{Namespace: p.ns, Keys: []interlock.Key{p.key}}
		if k.compared >= minWaits && k.others*100 >= k.compared*coarseShare {
			a.Kind, a.Count, a.Of, a.Lost, a.Indexes = CoarseKey, k.others, k.compared, k.lostOthers, k.coarse
			list = append(list, a)
		} else if k.waits >= hotWaits && k.lost >= hotLost && k.lost*100 >= r.lost[p.ns]*hotShare {
			a.Kind, a.Count, a.Of, a.Lost, a.Indexes = HotKey, k.waits, k.waits, k.lost, k.examples
			list = append(list, a)
		}
	}
	return list
}

// aboutClasses finds ttls that are too short.
func (r *Reducer) aboutClasses() (list []Advice) {
	for c, h := range r.classes {
		p99 := h.histogram.Percentile(99)
		if h.n < minHolds || h.losses < minLosses || h.ttl == 0 || p99 <= h.ttl {
			continue
		}
		a := Advice{
			Kind: ShortTTL, Namespace: c.ns, Class: c.name, Keys: []interlock.Key{h.key}, Count: h.losses, Of: h.n,
			P99: p99, TTL: h.ttl, Indexes: h.examples,
		}
		if p := r.patternOf(c.ns, h.key); p != nil {
			a.Pattern = p.name
		}
		list = append(list, a)
	}
	return list
}

// aboutPatterns finds capacities that are never used.
func (r *Reducer) aboutPatterns() (list []Advice) {
	type use struct {
		most, grants, waits int
		key                 interlock.Key
		index               interlock.Index
	}
	uses := map[*pattern]*use{}
	for _, p := range slices.SortedFunc(maps.Keys(r.keys), comparePlaces) {
		k := r.keys[p]
		if k.grants == 0 {
			continue
		}
		of := r.patternOf(p.ns, p.key)
		if of == nil || of.capacity == 0 {
			continue
		}
		u := uses[of]
		if u == nil {
			u = &use{}
			uses[of] = u
		}
		u.grants, u.waits = u.grants+k.grants, u.waits+k.waits
		if k.most > u.most {
			u.most, u.key, u.index = k.most, p.key, k.mostAt
		}
	}
	for p, u := range uses {
		if u.grants < minHolds || u.waits > 0 || u.most*100 > p.capacity*unusedShare {
			continue
		}
		list = append(list, Advice{
			Kind: UnusedCapacity, Namespace: p.ns, Pattern: p.name, Keys: []interlock.Key{u.key}, Count: u.most,
			Of: p.capacity, Indexes: []interlock.Index{u.index},
		})
	}
	return list
}

// describe sets the text and the command.
func (a *Advice) describe() {
	first := prose.ShellWord(string(a.Keys[0]))
	switch a.Kind {
	case LockOrder:
		var keys []string
		for _, k := range a.Keys {
			keys = append(keys, string(k))
		}
		a.Text = fmt.Sprintf(
			"%s take these keys in different orders, %d of %d times against this one, with %s: take them in the order %s.",
			strings.Join(named(a.Agents), ", "), a.Count, a.Of, prose.Count(a.Deadlocks, "deadlock", "deadlocks"),
			strings.Join(keys, ", "),
		)
		a.Command = "interlock run"
		for _, k := range keys {
			a.Command += " " + prose.ShellWord(k)
		}
		a.Command += " -- COMMAND"
	case CoarseKey:
		a.Text = fmt.Sprintf(
			"%d of %d waits for %s were for a holder that wrote at other children of it; they cost %s. Take the children.",
			a.Count, a.Of, a.Keys[0], prose.Short(a.Lost),
		)
		a.Command = fmt.Sprintf("interlock run %s -- COMMAND", prose.ShellWord(string(a.Keys[0])+"/CHILD"))
	case HotKey:
		a.Text = fmt.Sprintf(
			"%s cost %s in %d waits. Hold it for less time, or split it.", a.Keys[0], prose.Short(a.Lost), a.Count,
		)
		a.Command = "interlock why " + first
	case ShortTTL:
		ttl := max(a.P99*3/2, a.P99+roomForTTL).Round(time.Second)
		a.Text = fmt.Sprintf(
			"%d of %d leases of keys like %s ended by their ttl of %s, and 1 in 100 is held for over %s. Use a ttl of %s.",
			a.Count, a.Of, a.Keys[0], prose.Short(a.TTL), prose.Short(a.P99), prose.Short(ttl),
		)
		a.Command = fmt.Sprintf("interlock run --ttl %s %s -- COMMAND", ttl, first)
		if a.Pattern != "" {
			a.Command = fmt.Sprintf("interlock pattern set %s --ttl %s", prose.ShellWord(a.Pattern), ttl)
		}
	case UnusedCapacity:
		a.Text = fmt.Sprintf(
			"The pattern %s has %d permits for each key, with no more than %d in use at once. A smaller capacity would do.",
			a.Pattern, a.Of, a.Count,
		)
		a.Command = fmt.Sprintf("interlock pattern set %s --capacity %d", prose.ShellWord(a.Pattern), max(a.Count, 1))
	}
}

func named(agents []string) (names []string) {
	for _, a := range agents {
		names = append(names, prose.AgentName(a))
	}
	return names
}
