package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// QueuePath is the path of a queue, or of something that is done with it.
func QueuePath(name, action string) string {
	path := "/v1/queues/" + url.PathEscape(name)
	if action != "" {
		path += "/" + action
	}
	return path
}

// queueOf converts a queue of a journal to the form of the HTTP API.
func queueOf(q *interlock.TaskQueue) *api.QueueSettings {
	s := &api.QueueSettings{Name: q.Name, QueueRequest: api.QueueRequest{
		Paused: q.Paused, Drain: q.Drain, MaxAttempts: q.MaxAttempts, MaxRunning: q.MaxRunning, MaxTasks: q.MaxTasks,
		Backoff: q.Backoff.Milliseconds(), MaxBackoff: q.MaxBackoff.Milliseconds(), TTL: q.TTL.Milliseconds(),
		Grace: q.Grace.Milliseconds(), MaxHold: q.MaxHold.Milliseconds(), Stall: q.Stall.Milliseconds(),
		Pull: q.Pull, Submit: q.Submit, Admin: q.Admin,
		Approvers: q.Approvers, MinApprovals: q.MinApprovals, Approval: q.Approval.String(),
	}}
	for _, g := range q.Groups {
		s.Groups = append(s.Groups, api.ShareRequest(g))
	}
	return s
}

// QueueMode returns the mode of a queue, in a word.
func QueueMode(q *api.QueueStatus) cli.Cell {
	switch {
	case q.Paused && q.Drain:
		return cli.Coloured("paused, draining", cli.Yellow)
	case q.Paused:
		return cli.Coloured("paused", cli.Yellow)
	case q.Drain:
		return cli.Coloured("draining", cli.Yellow)
	}
	return cli.Coloured("open", cli.Green)
}

// QueueCounts returns the numbers of tasks by state.
func QueueCounts(q *api.QueueStatus) string {
	text := cli.Count(q.Tasks.Waiting, "task waits", "tasks wait")
	if q.Oldest > 0 {
		text += ", the first for " + cli.ShortMillis(q.Oldest)
	}
	for _, n := range []struct {
		n    int
		what string
	}{
		{q.Tasks.Running, " running"},
		{q.Tasks.Scheduled, " scheduled"},
		{q.Tasks.Asking, " asking a person"},
		{q.Tasks.Dead, " dead"},
	} {
		if n.n > 0 {
			text += ", " + strconv.Itoa(n.n) + n.what
		}
	}
	return text + "; " + cli.Count(q.Idle, "worker is idle", "workers are idle")
}

// QueueFacts returns the settings that differ from the defaults, each with the name of its flag.
func QueueFacts(q *api.QueueRequest) (facts [][2]string) {
	number := func(flag string, n int) {
		if n > 0 {
			facts = append(facts, [2]string{flag, strconv.Itoa(n)})
		}
	}
	time := func(flag string, n int64) {
		if n > 0 {
			facts = append(facts, [2]string{flag, cli.ShortMillis(n)})
		}
	}
	number("max-attempts", q.MaxAttempts)
	time("backoff", q.Backoff)
	time("max-backoff", q.MaxBackoff)
	time("ttl", q.TTL)
	time("grace", q.Grace)
	time("max-hold", q.MaxHold)
	time("stall", q.Stall)
	number("max-running", q.MaxRunning)
	if q.MaxTasks < interlock.MaxTasks {
		number("max-tasks", q.MaxTasks)
	}
	for i := range q.Groups {
		facts = append(facts, [2]string{"group", cli.Clean(shareText(&q.Groups[i]))})
	}
	for _, list := range QueueAccess(q) {
		if len(*list.Entries) > 0 {
			facts = append(facts, [2]string{list.Flag, cli.Clean(strings.Join(*list.Entries, ","))})
		}
	}
	if len(q.Approvers) > 0 {
		facts = append(facts, [2]string{"approvers", cli.Clean(strings.Join(q.Approvers, ","))})
	}
	number("min-approvals", q.MinApprovals)
	if q.Approval == interlock.ApprovalReuse.String() {
		facts = append(facts, [2]string{"approval", q.Approval})
	}
	return facts
}

// TellLimits prints what a time limit does in a queue with approvers of its own.
func TellLimits(a *cli.App, q *api.QueueRequest) {
	if len(q.Approvers) > 0 || q.MinApprovals > 0 {
		a.Complain(
			"a question that is not answered in time is denied here, also with --on-limit approved: the queue restricts its approvers, or requires several",
		)
	}
}

// AccessList is one of the access lists of a queue.
type AccessList struct {
	Flag, Usage string
	Entries     *[]string
}

// QueueAccess returns the access lists of a queue, each with the name of its flag.
func QueueAccess(q *api.QueueRequest) []AccessList {
	return []AccessList{
		{
			"pull",
			"principals that may pull its tasks: `WHO,...`, each the name of a credential, group:NAME or * (default every worker of the queue)",
			&q.Pull,
		},
		{
			"submit", "principals that may submit tasks to it, or send messages if it is a writer's (default every agent)",
			&q.Submit,
		},
		{"admin", "principals that may, besides operators, pause it and change tasks of others (default none)", &q.Admin},
	}
}

// shareText returns a group's part of a queue as --group takes it.
func shareText(g *api.ShareRequest) string {
	text := g.Group + "="
	if g.Weight > 0 {
		text += strconv.Itoa(g.Weight)
	}
	if g.Max > 0 {
		text += ".." + strconv.Itoa(g.Max)
	}
	return text
}

// QueueTurns reads NAME=WEIGHT..MAX.
type QueueTurns []api.ShareRequest

func (f *QueueTurns) Set(s string) error {
	if s == "" {
		*f = append(*f, api.ShareRequest{})
		return nil
	}
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return cli.Usagef("want NAME=WEIGHT..MAX, such as acme=2..10")
	}
	g := api.ShareRequest{Group: s[:i]}
	weight, most, _ := strings.Cut(s[i+1:], "..")
	ok := weight+most != ""
	for _, n := range []struct {
		text string
		to   *int
	}{{weight, &g.Weight}, {most, &g.Max}} {
		if n.text == "" {
			continue
		}
		v, err := strconv.ParseUint(n.text, 10, 31)
		ok = ok && err == nil && v > 0
		*n.to = int(v)
	}
	if !ok {
		return cli.Usagef("want NAME=WEIGHT..MAX, such as acme=2..10, acme=2 or acme=..10")
	}
	*f = append(*f, g)
	return nil
}

func (f *QueueTurns) String() string {
	list := make([]string, len(*f))
	for i := range *f {
		list[i] = shareText(&(*f)[i])
	}
	return strings.Join(list, " ")
}

func (f *QueueTurns) Type() string { return "group" }
