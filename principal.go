package interlock

import (
	"slices"
	"strings"
)

// Principal is an authenticated caller: the name and the rights of its credential. A nil
// *Principal stands for a caller of a server without credentials; it has all rights.
type Principal struct {
	Name   string
	Roles  Roles
	Queues []string // the queues that it may work for, if Roles has RoleWorker; "*" is every queue
	Groups []string // the claimant groups that it belongs to
}

// Roles is a set of roles. Each role but RoleMetrics has the rights of RoleViewer and those
// of its own; docs/security.md has the table of rights.
type Roles uint16

const (
	// RoleViewer reads: keys, waits, events, documents, tasks, queues, patterns.
	RoleViewer Roles = 1 << iota
	// RoleAgent holds leases and sessions, commits, claims effects, submits tasks and
	// messages, and changes the tasks that it submitted.
	RoleAgent
	// RoleWorker pulls tasks from the queues that Principal.Queues names, and settles
	// them.
	RoleWorker
	// RoleApprover answers questions about tasks and parked leases.
	RoleApprover
	// RoleOperator administers patterns, settings, queues and writers, changes anyone's
	// tasks, reconciles effects and revokes leases.
	RoleOperator
	// RoleServer administers the parts that all namespaces of a server share: it rotates the
	// keys that sign fences. RoleOperator does not include it, since an operator's rights end
	// with its namespace.
	RoleServer
	// RoleMetrics reads the metrics with the names of all namespaces, and nothing else. It is
	// for a monitoring system: its credential should not read texts of agents.
	RoleMetrics
	// RoleMerger runs merge queues: it takes their seats, writes their documents, and submits the checks for
	// RoleChecker. It has the rights of RoleAgent, too.
	RoleMerger
	// RoleChecker pulls the tasks of checks of merge queues, and settles them: its results are verdicts.
	RoleChecker

	// AllRoles is the set of all roles.
	AllRoles = RoleViewer | RoleAgent | RoleWorker | RoleApprover | RoleOperator | RoleServer | RoleMetrics |
		RoleMerger | RoleChecker
)

var roleNames = [...]string{
	"viewer", "agent", "worker", "approver", "operator", "server", "metrics", "merger", "checker",
}

// ParseRole returns the role with a name; ok is false for any other text.
func ParseRole(name string) (role Roles, ok bool) {
	i := slices.Index(roleNames[:], name)
	return 1 << max(i, 0), i >= 0
}

// String returns the names of the roles, with commas between.
func (r Roles) String() string {
	var names []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Has reports whether p has one of some roles.
func (p *Principal) Has(roles Roles) bool { return p == nil || p.Roles&roles != 0 }

// WorksFor reports whether p may pull tasks from a queue. Queues names no reserved ones.
func (p *Principal) WorksFor(queue string) bool {
	if need := PullRoles(queue); need != 0 {
		return p.Has(need)
	}
	return p == nil || p.Roles&RoleWorker != 0 && (slices.Contains(p.Queues, queue) || slices.Contains(p.Queues, "*"))
}

// InGroup reports whether p may act for a claimant group; "" is no group. A credential that
// names no groups may act for any.
func (p *Principal) InGroup(group string) bool {
	return p == nil || group == "" || len(p.Groups) == 0 || slices.Contains(p.Groups, group)
}

// GroupPrefix begins an entry of an access list that names a claimant group.
const GroupPrefix = "group:"

// Matches reports whether an entry of an access list names p: the name of a principal,
// GroupPrefix and the name of a group that its credential lists, or "*" for every principal. A
// nil p matches "*" only.
func (p *Principal) Matches(entry string) bool {
	if entry == "*" || p == nil {
		return entry == "*"
	}
	if group, ok := strings.CutPrefix(entry, GroupPrefix); ok {
		return slices.Contains(p.Groups, group)
	}
	return entry == p.Name
}

// Listed reports whether an access list admits p. An empty list admits every principal.
func (p *Principal) Listed(list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, p.Matches)
}
