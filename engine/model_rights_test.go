package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// The rights of principals: the list entries that match them, the groups that they act for, the
// tasks that they may hold, and their rights to leases of others.

// principals are those of the random runs and of the scripts, by their names. A caller
// without a name has no credential.
var principals = map[string]*interlock.Principal{
	"web": {Name: "web", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"*"}},
	"ops": {Name: "ops", Roles: interlock.AllRoles, Queues: []string{"*"}},
	"red": {
		Name: "red", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"q"}, Groups: []string{"x"},
	},
	"teller": {Name: "teller", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"bank"}},
	"plain":  {Name: "plain", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"*"}},
	"closer": {
		Name: "closer", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"*"},
		Groups: []string{"closing"},
	},
	"mia":      {Name: "mia", Roles: interlock.RoleMerger},
	"checker":  {Name: "checker", Roles: interlock.RoleChecker},
	"chief":    {Name: "chief", Roles: interlock.RoleAgent | interlock.RoleOperator},
	"operator": {Name: "operator", Roles: interlock.RoleAgent | interlock.RoleOperator},
	"blue":     {Name: "blue", Roles: interlock.RoleAgent | interlock.RoleApprover, Groups: []string{"y", "x"}},
}

// principalOf returns the principal that sends a command under a name.
func principalOf(name string) *interlock.Principal {
	if p := principals[name]; p != nil || name == "" {
		return p
	}
	return &interlock.Principal{Name: name, Roles: interlock.AllRoles, Queues: []string{"*"}}
}

// names reports whether an entry of a list means a principal.
func names(entry string, p *interlock.Principal) bool {
	group, grouped := strings.CutPrefix(entry, "group:")
	switch {
	case entry == "*":
		return true
	case p == nil:
		return false
	case grouped:
		return slices.Contains(p.Groups, group)
	}
	return entry == p.Name
}

// listed reports whether a list lets a principal in.
func listed(list []string, p *interlock.Principal) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(entry string) bool { return names(entry, p) })
}

// actsFor reports whether a principal may act for a group.
func actsFor(p *interlock.Principal, group string) bool {
	return p == nil || group == "" || len(p.Groups) == 0 || slices.Contains(p.Groups, group)
}

// allowed reports whether the first rule that names the principal has the mode.
func allowed(p *interlock.Pattern, by *interlock.Principal, mode interlock.Mode) bool {
	for _, rule := range p.Allow {
		if names(rule.Principal, by) {
			return len(rule.Modes) == 0 || slices.Contains(rule.Modes, mode)
		}
	}
	return len(p.Allow) == 0
}

// isReserved reports whether a key is one of the merge queue, whatever the patterns are.
func isReserved(key interlock.Key) bool {
	kind, _, found := strings.Cut(string(key), ":")
	return found && writers[kind] != 0
}

// writers are the roles that write keys of the merge queue.
var writers = map[string]interlock.Roles{
	"merge": interlock.RoleMerger, "verdict": interlock.RoleMerger,
	"freeze": interlock.RoleMerger | interlock.RoleOperator,
}

// reserved returns the code that keeps a principal from a key which is reserved for mergers or operators.
func reserved(key interlock.Key, by *interlock.Principal) (codes []interlock.Code) {
	kind, _, _ := strings.Cut(string(key), ":")
	if isReserved(key) && by != nil && by.Roles&writers[kind] == 0 {
		codes = append(codes, interlock.CodeForbidden)
	}
	return codes
}

// mayGive reports whether a principal may submit to a queue as far as its name is concerned, and mayTake whether it may
// pull from it and settle its tasks.
func mayGive(queue string, by *interlock.Principal) bool {
	return by == nil || by.Roles&interlock.RoleMerger != 0 || !strings.HasPrefix(queue, "check.")
}

func mayTake(queue string, by *interlock.Principal) bool {
	need := map[string]interlock.Roles{
		"merge": interlock.RoleMerger, "check": interlock.RoleMerger | interlock.RoleChecker,
	}
	kind, _, dotted := strings.Cut(queue, ".")
	return by == nil || !dotted || need[kind] == 0 || by.Roles&need[kind] != 0
}

// mayClaim reports whether a principal may claim by the rules of the keys' patterns.
func (m *model) mayClaim(ns interlock.Namespace, by *interlock.Principal, claims ...interlock.Claim) bool {
	return !slices.ContainsFunc(claims, func(c interlock.Claim) bool {
		p := m.pattern(ns, c.Key)
		return p != nil && !allowed(p, by, c.Mode) || m.forbiddenBelow(ns, by, c) || m.forbiddenAbove(ns, by, c)
	})
}

// mayHold reports whether a principal may be given a task.
func (m *model) mayHold(by *interlock.Principal, t *task) bool {
	return actsFor(by, t.spec.Group) && m.mayClaim(t.ns, by, t.spec.Claims...)
}

// idleAt returns the workers that are idle at a task's queue.
func (m *model) idleAt(t *task) (list []*worker) {
	for _, w := range m.workers {
		if w.pull.Namespace == t.ns && w.pull.Queue == t.spec.Queue {
			list = append(list, w)
		}
	}
	return list
}

// isBarred reports whether nothing but the rights of the idle workers keeps a task from them.
func (m *model) isBarred(t *task) bool {
	return t.stands() && m.free(t.request) && len(m.idleAt(t)) > 0 && m.workerFor(t) == nil
}

// mayBeBarred reports the same where tasks of other queues that may stand aside do.
func (m *model) mayBeBarred(t *task) bool { return m.atBest().isBarred(t) }

// checkBars compares what is said to keep the idle workers from a task.
func (m *model) checkBars(t *task, bars []engine.Bar) error {
	outside, others := 0, 0
	if m.isBarred(t) || len(bars) > 0 && m.mayBeBarred(t) {
		for _, w := range m.idleAt(t) {
			if actsFor(principalOf(w.pull.Actor), t.spec.Group) {
				others++
			} else {
				outside++
			}
		}
	}
	for _, b := range bars {
		m.meetBar(b)
		if b.Pattern == "" {
			outside -= b.Workers
			continue
		}
		kept := 0
		for _, p := range m.patterns[t.ns] {
			for _, w := range m.idleAt(t) {
				if by := principalOf(w.pull.Actor); p.Name == b.Pattern && actsFor(by, t.spec.Group) && !allowed(p, by, b.Mode) {
					kept++
				}
			}
		}
		if kept < b.Workers {
			return fmt.Errorf("%v: %+v is said to bar it, which keeps off %d", t, b, kept)
		}
		others -= b.Workers
	}
	if outside != 0 || others != 0 {
		return fmt.Errorf("%v is barred by %+v: %d outside its group and %d others too few", t, bars, outside, others)
	}
	return nil
}

// notFor returns the codes that forbid the caller to take over a lease with some claims.
func (m *model) notFor(head *engine.Head, r *request, claims []interlock.Claim) (codes []interlock.Code) {
	by := principalOf(head.Actor)
	for _, c := range claims {
		codes = append(codes, reserved(c.Key, by)...)
	}
	if head.Actor == r.ownerOf() {
		return codes
	}
	if !actsFor(by, r.ask.Group) {
		codes = append(codes, interlock.CodeForbidden)
	}
	if !m.mayClaim(r.ns, by, claims...) {
		codes = append(codes, interlock.CodeModeForbidden)
	}
	return codes
}

// notTaken is notFor for an offer that a command would take up.
func (m *model) notTaken(head *engine.Head, r *request) []interlock.Code {
	if r.phase != offered {
		return nil
	}
	return m.notFor(head, r, r.claims)
}

// notWritten names why a principal may not write a key of a pattern under a lease,
// though it covers the key.
func (m *model) notWritten(c *engine.Commit, p *interlock.Pattern, key interlock.Key) (codes []interlock.Code) {
	by := principalOf(c.Actor)
	if p.WriterQueue != "" && by != nil {
		works := by.Roles&interlock.RoleWorker != 0 &&
			(slices.Contains(by.Queues, "*") || slices.Contains(by.Queues, p.WriterQueue))
		if !works {
			codes = append(codes, interlock.CodeForbidden)
		}
	}
	if q := m.queue(c.Namespace, p.WriterQueue); q != nil && !listed(q.Pull, by) {
		codes = append(codes, interlock.CodeForbidden)
	}
	over := interlock.Claim{Key: key, Mode: interlock.Exclusive}
	if claim, _ := m.coverFor(c, key); !m.mayClaim(c.Namespace, by, claim, over) {
		codes = append(codes, interlock.CodeModeForbidden)
	}
	return codes
}

// mayAdminister reports whether a principal may do with a queue what operators may.
func mayAdminister(q *interlock.TaskQueue, by *interlock.Principal) bool {
	return by == nil || by.Roles&interlock.RoleOperator != 0 || len(q.Admin) > 0 && listed(q.Admin, by)
}

// strangersActor returns the actor of an event if it is not one of the principals, otherwise
// "".
func strangersActor(ev *record.Event) string {
	if principals[ev.Actor] != nil || strings.HasPrefix(ev.Actor, "webhook:") { // a link to it acts in its name
		return ""
	}
	return ev.Actor
}

// meetBar records what was seen to keep idle workers from a task.
func (m *model) meetBar(b engine.Bar) {
	if m.barred == nil {
		m.barred = map[bool]int{}
	}
	m.barred[b.Pattern != ""]++
}
