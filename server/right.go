package server

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// The rights of credentials. Each route of HTTP and each operation of the session stream needs
// one right, each right belongs to some roles, and refusal is the one place that compares them.
// docs/security.md has the same table; TestRoles tries it with each role. Decisions that depend
// on data (the access lists of queues, the rules of patterns, the asker) are the engine's.

// right is the right that a route or an operation needs.
type right uint8

const (
	// mayAnything is for routes that need no credential.
	mayAnything right = iota
	// mayRead covers operations that change nothing.
	mayRead
	// mayLive covers sessions, and the holder's operations on a lease.
	mayLive
	// mayHold covers new leases and waits, commits, effects, files and runs.
	mayHold
	// maySubmit covers tasks, and messages to the writer of a key.
	maySubmit
	// mayManage covers changes of tasks, and pausing and draining queues: by the principal
	// that submitted a task, by those in the queue's Admin list, and by operators.
	mayManage
	// mayWork covers pulling from a queue, and settling the pulled tasks.
	mayWork
	// mayApprove covers answers to questions.
	mayApprove
	// mayRevoke covers taking a lease from its holder, and asking for it.
	mayRevoke
	// mayAdminister covers patterns, settings, queues, writers and the head of the journal.
	mayAdminister
	// mayRotate covers the keys that sign fences. They are those of all namespaces, so an
	// operator of one does not have it.
	mayRotate
	// mayBackUp covers backups. They have all namespaces in them, and the ids that are secrets.
	mayBackUp
	// maySeeServers covers the servers over the journal, and the shards that they own.
	maySeeServers
	// mayPlace covers moves of namespaces between shards, and servers that leave theirs.
	mayPlace
	// mayScrape covers the metrics. Every caller sees the sums of all namespaces; those by
	// namespace are for RoleMetrics alone, see seesTenants.
	mayScrape
)

// grants has the roles of each right, and what a caller without them may not do. Any one role is
// enough.
var grants = [...]struct {
	roles interlock.Roles
	what  string
}{
	mayRead:       {interlock.AllRoles &^ interlock.RoleMetrics, "read"},
	mayLive:       {holders | workers, "have sessions and leases"},
	mayHold:       {holders, "hold leases, commit or claim effects"},
	maySubmit:     {holders, "submit tasks or send messages"},
	mayManage:     {holders | interlock.RoleOperator, "change tasks, or pause and drain queues"},
	mayWork:       {workers, "pull tasks or settle them"},
	mayApprove:    {interlock.RoleApprover, "answer questions"},
	mayRevoke:     {interlock.RoleOperator, "revoke leases"},
	mayAdminister: {interlock.RoleOperator, "administer patterns, settings, queues, writers, webhooks or namespaces"},
	mayRotate:     {interlock.RoleServer, "rotate the keys that sign fences, which all namespaces share"},
	mayBackUp:     {interlock.RoleServer, "back up the server, with all that is in any namespace"},
	maySeeServers: {interlock.RoleServer, "see the servers and their shards"},
	mayPlace:      {interlock.RoleServer, "move namespaces between shards, or drain servers"},
	mayScrape:     {interlock.AllRoles, "read metrics"},
}

const (
	holders = interlock.RoleAgent | interlock.RoleMerger
	workers = interlock.RoleWorker | interlock.RoleMerger | interlock.RoleChecker
)

// refusal returns why p may not use a right, nil if it may. queue is the one that p
// pulls from, "" for any other operation.
func refusal(p *interlock.Principal, r right, queue string) *interlock.Error {
	if r == mayAnything || p == nil {
		return nil
	}
	g := &grants[r]
	if !p.Has(g.roles) {
		return &interlock.Error{Code: interlock.CodeForbidden, Message: fmt.Sprintf(
			"credential %q may not %s: this needs the role %s, and it has %s; use another credential, or ask the operator "+
				"for the role",
			cleanText(p.Name), g.what, anyOf(g.roles), p.Roles,
		)}
	}
	if need := interlock.PullRoles(queue); need != 0 && !p.Has(need) {
		return &interlock.Error{Code: interlock.CodeForbidden, Message: fmt.Sprintf(
			"credential %q may not pull from queue %q, which is reserved for the merge queue: this needs the role %s, "+
				"and it has %s; ask the operator for the role",
			cleanText(p.Name), cleanText(queue), anyOf(need), p.Roles,
		)}
	}
	if queue != "" && !p.WorksFor(queue) {
		return &interlock.Error{Code: interlock.CodeForbidden, Message: fmt.Sprintf(
			"credential %q is not a worker of queue %q: use a worker's credential, or ask the operator for worker=%s",
			cleanText(p.Name), cleanText(queue), cleanText(queue),
		)}
	}
	return nil
}

// anyOf names roles. One of them is needed.
func anyOf(roles interlock.Roles) string {
	text := ""
	for role := interlock.RoleViewer; role&interlock.AllRoles != 0; role <<= 1 {
		if roles&role == 0 {
			continue
		}
		if text != "" {
			text += " or "
		}
		text += role.String()
	}
	return text
}

// allowed reports whether the caller may use a right; if not, it answers the call.
func (c *call) allowed(r right) bool {
	if no := refusal(c.identity.Principal, r, ""); no != nil {
		c.fail(no)
		return false
	}
	return true
}

// opRights has the right that each operation of the session stream needs.
var opRights = [...]right{
	proto.OpOpen:       mayLive,
	proto.OpAttach:     mayLive,
	proto.OpHeartbeat:  mayLive,
	proto.OpClose:      mayLive,
	proto.OpGetLease:   mayLive,
	proto.OpRenew:      mayLive,
	proto.OpRelease:    mayLive,
	proto.OpPark:       mayLive,
	proto.OpResume:     mayLive,
	proto.OpPoll:       mayLive,
	proto.OpLeave:      mayLive,
	proto.OpFollowTask: mayLive,

	proto.OpAcquire:      mayHold,
	proto.OpConvert:      mayHold,
	proto.OpArrive:       mayHold,
	proto.OpDeclare:      mayHold,
	proto.OpCommit:       mayHold,
	proto.OpClaimEffect:  mayHold,
	proto.OpSettleEffect: mayHold,
	proto.OpStartRun:     mayHold,

	proto.OpCheckFence:    mayRead,
	proto.OpListPatterns:  mayRead,
	proto.OpGetSettings:   mayRead,
	proto.OpReadState:     mayRead,
	proto.OpReadHistory:   mayRead,
	proto.OpGetEffect:     mayRead,
	proto.OpListEffects:   mayRead,
	proto.OpGetContention: mayRead,
	proto.OpGetTask:       mayRead,
	proto.OpListTasks:     mayRead,
	proto.OpListQueues:    mayRead,
	proto.OpReadLog:       mayRead,

	proto.OpSubmitTask: maySubmit,
	proto.OpChangeTask: mayManage,
	proto.OpPullTasks:  mayWork,
	proto.OpAckTask:    mayWork,
	proto.OpNackTask:   mayWork,
	proto.OpAskHuman:   mayWork,
	proto.OpAnswerTask: mayApprove,

	proto.OpSetPattern:    mayAdminister,
	proto.OpDropPattern:   mayAdminister,
	proto.OpRevertPattern: mayAdminister,
	proto.OpConfigure:     mayAdminister,
	proto.OpSetQueue:      mayAdminister,
	proto.OpDropQueue:     mayAdminister,
}

// mayOp returns why the stream's principal may not carry out an operation, nil if it may.
func (st *stream) mayOp(o *proto.Op) *interlock.Error {
	r := mayRead // of one that is unknown, and refused as such next
	if int(o.Kind) < len(opRights) {
		r = opRights[o.Kind]
	}
	queue := ""
	if o.Kind == proto.OpPullTasks {
		queue = o.Task.Queue
	}
	return refusal(st.identity.Principal, r, queue)
}
