package sim

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// In half of the worlds the servers ask for credentials. Each agent has one of its own, with
// groups and roles by chance; which role may send which command is the server's business, and
// there is none here. Keys vault:* are for one group, the mailboxes' queue has a list of those
// that may pull, and agents try what they may not do: they take up each other's leases, write
// past the single writer, and approve their own tasks.
//
// The audit knows the owner of each request from the journal's events alone, and the groups of
// agents from the world's plan.

// vaultGroup is the only group that may claim vault keys.
const vaultGroup = cappedGroup

// credential draws the principal of an agent, nil in a world without credentials.
func (w *world) credential(name string) *interlock.Principal {
	if !w.plan.credentials {
		return nil
	}
	r := w.rng
	return &interlock.Principal{
		Name: name,
		Roles: interlock.RoleAgent | interlock.RoleWorker | pick(
			r, interlock.RoleApprover, interlock.RoleApprover, interlock.RoleOperator, 0,
		),
		Queues: []string{"*"},
		Groups: pick(r, nil, nil, []string{cappedGroup}, []string{ownGroup}, []string{cappedGroup, ownGroup}),
	}
}

// mayPullMail lists the credentials that may pull from the queue of the mailboxes.
func (w *world) mayPullMail() []string {
	if !w.plan.credentials {
		return nil
	}
	return []string{interlock.GroupPrefix + ownGroup, "agent-1", "agent-2"}
}

// isVault reports whether a claim of a key lets its holder write a vault key.
func isVault(k interlock.Key) bool { return strings.HasPrefix(string(k), "vault:") }

// named returns the principal with a name; nil is a caller without a credential.
func (w *world) named(name string) *interlock.Principal {
	for _, a := range w.agents {
		if a.principal != nil && a.principal.Name == name {
			return a.principal
		}
	}
	return nil
}

// credentialOf names the credential that has a request.
func (a *audit) credentialOf(r *request) string {
	if s := a.sessions[r.session]; s != nil {
		return s.actor
	}
	return r.actor
}

// entitled checks that a request that was granted is in the hands of a principal that may
// claim all of it.
func (a *audit) entitled(w *world, r *request) {
	if !w.plan.credentials {
		return
	}
	by := w.named(a.credentialOf(r))
	if by == nil {
		w.fail("rights", "at index %d %v is granted to credential %q, which there is not", a.index, r, a.credentialOf(r))
		return
	}
	if !by.InGroup(r.group) {
		w.fail(
			"rights", "at index %d %v is granted for group %q, and %s may act for %v", a.index, r, r.group, by.Name, by.Groups,
		)
	}
	for _, c := range r.claims {
		if isVault(c.Key) && !by.Matches(interlock.GroupPrefix+vaultGroup) {
			w.fail("rights", "at index %d %v is granted to %s, which may not claim %s", a.index, r, by.Name, c.Key)
		}
	}
}

// mayWork checks that a worker may pull from the queue of its task.
func (a *audit) mayWork(w *world, r *request, t *task) {
	if !w.plan.credentials {
		return
	}
	queue, listed := queueName, []string(nil)
	if t.key != "" {
		queue, listed = mailQueue, w.mayPullMail()
	}
	if by := w.named(a.credentialOf(r)); !by.WorksFor(queue) || !by.Listed(listed) {
		w.fail("rights", "at index %d task %x of queue %q is handed to %s", a.index, t.id[12:], queue, a.credentialOf(r))
	}
}

// mayWrite checks that a principal may change a document.
func (a *audit) mayWrite(w *world, key interlock.Key, ev *record.Event) {
	if !w.plan.credentials {
		return
	}
	by := w.named(ev.Actor)
	switch {
	case by == nil:
		w.fail("rights", "at index %d %s is written by credential %q, which there is not", a.index, key, ev.Actor)
	case isVault(key) && !by.Matches(interlock.GroupPrefix+vaultGroup):
		w.fail("rights", "at index %d %s is written by %s, which may not claim it", a.index, key, by.Name)
	case strings.HasPrefix(string(key), "box:") && !(by.WorksFor(mailQueue) && by.Listed(w.mayPullMail())):
		w.fail("rights", "at index %d %s is written by %s, which may not pull its messages", a.index, key, by.Name)
	}
}

// answeredBy checks that a question about a task is not answered by its asker or by the
// submitter of the task. At its limit no principal answers.
func (a *audit) answeredBy(w *world, t *task, ev *record.Event) {
	if ev.Actor != "" && (ev.Actor == t.actor || t.askers[ev.Actor]) {
		w.fail(
			"rights", "at index %d %s answers the question about task %x, in which it is involved", a.index, ev.Actor,
			t.id[12:],
		)
	}
}

// meddle draws a lease of any agent of the namespace, to try whether a command about it
// is carried out for the wrong one.
func (a *agent) meddle() {
	other := a.w.agents[a.rng(len(a.w.agents))]
	h := other.one()
	if h == nil || other.namespace != a.namespace || !a.w.plan.credentials {
		return
	}
	id := h.id
	what := fmt.Sprintf("meddle with fence %d of %s: ", h.fence, other.name)
	switch a.rng(4) {
	case 0:
		a.send(what+"renew", func() engine.Command { return &engine.Renew{Lease: id} }, nil)
	case 1:
		a.send(
			what+"resume", func() engine.Command { return &engine.Resume{Lease: id, Flow: a.flow(), Attach: true} }, a.got(),
		)
	case 2:
		w := a.write()
		a.send(what+"commit "+string(w.Key), func() engine.Command {
			return &engine.Commit{Agent: a.bareName(), CommitRequest: interlock.CommitRequest{
				Leases: []interlock.LeaseID{id}, Writes: []interlock.Write{w},
			}}
		}, nil)
	case 3:
		a.send(what+"ack", func() engine.Command {
			return &engine.Ack{Lease: id, CommitRequest: interlock.CommitRequest{
				Writes: []interlock.Write{{Key: "done", Op: interlock.Add, Delta: 1}},
			}}
		}, nil)
	}
}

// write draws a write of a key that not every agent may change.
func (a *agent) write() interlock.Write {
	key := interlock.Key(fmt.Sprintf([]string{"vault:%d", "vault:%d/doc", "box:%d"}[a.rng(3)], a.rng(2)))
	return interlock.Write{Key: key, Op: interlock.Put, Body: []byte(fmt.Sprintf(`{"n":%d}`, a.rng(1000)))}
}
