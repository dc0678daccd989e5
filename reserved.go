package interlock

import "strings"

// The merge queue judges the work of agents, so agents may not write what it reads. Its keys and queues are reserved
// in every namespace, by their names and whatever the patterns and access lists say:
//
//	merge:*  verdict:*   keys: only RoleMerger claims them, writes them, and sends messages to them
//	freeze:*             keys: only RoleOperator and RoleMerger do so
//	merge.*              queues: only RoleMerger pulls and settles; any agent submits
//	check.*              queues: only RoleMerger submits; RoleChecker and RoleMerger pull and settle
//
// A key has one spelling there: no pattern respells it. A caller without a Principal has all roles.

// IsReserved reports whether not every agent may claim and write a key.
func (k Key) IsReserved() bool { return k.WriteRoles() != 0 }

// WriteRoles returns the roles that let a principal claim and write a key, any one of them. 0 means that the key is not
// reserved.
func (k Key) WriteRoles() Roles {
	switch {
	case strings.HasPrefix(string(k), "merge:"), strings.HasPrefix(string(k), "verdict:"):
		return RoleMerger
	case strings.HasPrefix(string(k), "freeze:"):
		return RoleMerger | RoleOperator
	}
	return 0
}

// SubmitRoles returns the roles that let a principal submit tasks to a queue, or send messages to its pattern's keys.
// 0 means that the queue is not reserved.
func SubmitRoles(queue string) Roles {
	if strings.HasPrefix(queue, "check.") {
		return RoleMerger
	}
	return 0
}

// PullRoles returns the roles that let a principal pull and settle the tasks of a queue, any one of them. 0 means that
// the queue is not reserved.
func PullRoles(queue string) Roles {
	switch {
	case strings.HasPrefix(queue, "merge."):
		return RoleMerger
	case strings.HasPrefix(queue, "check."):
		return RoleMerger | RoleChecker
	}
	return 0
}
