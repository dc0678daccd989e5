package hook

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/invisible"
)

// Outcomes of leases: its holder wrote one of its files, or none.
const (
	edited    = "edited"
	untouched = "nothing edited"
)

// after notes what a tool has written, and releases it where leases are held for one edit only.
func (v *visit) after(ctx context.Context) error {
	v.learnReads()
	v.took()
	v.committed()
	files := v.written()
	if len(files) == 0 {
		return nil
	}
	sure := false
	var idle []File
	v.with(v.flowName(), func(f *flow) {
		idle = f.ran(files)
		switch {
		case v.ev.Kind == AfterTool:
			f.know(files)
			f.edit(files)
			f.sure = true
		case !f.sure && !runners[strings.ToLower(v.ev.Tool)]: // a command that failed may have written before
			f.unedit(files)
		}
		sure = f.sure
	})
	if v.ev.Kind == AfterTool {
		v.memory.wrote(v.conversation, v.caller.Agent(), v.flowName(), files)
	} else if !sure {
		v.memory.unwrote(v.conversation, v.flowName(), files)
	}
	if !v.o.perEdit {
		return nil
	}
	for _, held := range v.caller.Leases(v.flowName()) {
		if slices.ContainsFunc(held.Keys, func(key string) bool { return overlaps(key, idle) }) && !v.writes(held) {
			if err := v.release(ctx, v.flowName(), held); err != nil {
				return err
			}
		}
	}
	return nil
}

// writes reports whether the agent is writing a file of a lease.
func (v *visit) writes(held agent.Held) (is bool) {
	v.with(v.flowName(), func(f *flow) {
		is = slices.ContainsFunc(held.Keys, func(key string) bool { return f.running[interlock.Key(selfOf(key))] > 0 })
	})
	return is
}

// leave releases what an agent holds at the end of its turn, of its life, or of its worktree.
func (v *visit) leave(ctx context.Context) error {
	flows := []string{v.flowName()}
	switch {
	case v.ev.Kind == WorktreeRemoved:
		return v.leaveWorktree(ctx)
	case v.ev.Kind == SubagentEnd && v.ev.Flow == mainFlow:
		return nil // a harness without ids of sub-agents
	case v.ev.Kind == TurnEnd && v.ev.Flow == mainFlow && v.ev.Alone:
		flows = v.allFlows() // also sub-agents that ended without a report
	}
	for _, name := range flows {
		if v.ev.Message != "" && name == v.flowName() {
			v.with(name, func(f *flow) { f.message = v.ev.Message })
		}
		if err := v.leaveFlow(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) leaveFlow(ctx context.Context, name string) error {
	var tickets []api.TicketID
	v.with(name, func(f *flow) {
		for ticket := range f.waits {
			tickets = append(tickets, ticket)
		}
		clear(f.waits)
		clear(f.told)
	})
	tickets = append(tickets, v.caller.Waits(name)...) // one from before a restart is in no waits
	slices.Sort(tickets)
	for _, ticket := range slices.Compact(tickets) {
		if err := ignoreProblem(v.caller.Leave(ctx, ticket)); err != nil {
			return err
		}
	}
	for _, held := range v.caller.Leases(name) {
		if err := v.release(ctx, name, held); err != nil {
			return err
		}
	}
	v.with(name, func(f *flow) {
		f.edited, f.sure, f.message = nil, false, ""
		clear(f.seen)
		clear(f.running)
	})
	return nil
}

// allFlows returns the agents of the conversation, also those that only the server remembers.
func (v *visit) allFlows() (names []string) {
	names = append(v.caller.Flows(), mainFlow)
	v.mu.Lock()
	defer v.mu.Unlock()
	names = slices.AppendSeq(names, maps.Keys(v.flows))
	slices.Sort(names)
	return slices.Compact(names)
}

// leaveWorktree releases the files of a removed worktree, in all flows. It may be gone from the disk already.
func (v *visit) leaveWorktree(ctx context.Context) error {
	worktree := shell.Clean(v.ev.Worktree)
	v.mu.Lock()
	copied := v.copies[worktree]
	v.mu.Unlock()
	if at := v.locator.locate(worktree); copied == "" && at.Path == "" {
		copied = at.Repo
	}
	if copied == "" {
		return nil // no agent of the session worked there
	}
	root := string(keyOf("repo:"+segment(copied), ""))
	for _, name := range v.allFlows() {
		for _, held := range v.caller.Leases(name) {
			gone := func(key string) bool { return selfOf(key) == root || strings.HasPrefix(selfOf(key), root+"/") }
			if slices.ContainsFunc(held.Keys, gone) {
				if err := v.release(ctx, name, held); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// release returns a lease, with a note about what was edited under it. A lease that is over already is no error.
func (v *visit) release(ctx context.Context, name string, held agent.Held) error {
	r := api.ReleaseRequest{Outcome: untouched}
	v.with(name, func(f *flow) {
		delete(f.seen, held.Lease)
		var names []string
		f.edited = slices.DeleteFunc(f.edited, func(file File) bool {
			under := slices.ContainsFunc(held.Keys, func(key string) bool { return overlaps(key, []File{file}) })
			if under {
				names = append(names, file.Name)
			}
			return under
		})
		if len(names) > 0 {
			r.Outcome = edited
			r.Note = "edited " + strings.Join(names[max(0, len(names)-maxEdited):], ", ")
			if f.message != "" {
				r.Note += ": " + f.message
			}
			r.Note = invisible.Clip(r.Note, maxLine)
		}
	})
	return ignoreProblem(v.caller.Release(ctx, held.Lease, r))
}

// end ends the session: all that its agents hold is released, and their places in line are given up.
func (v *visit) end(ctx context.Context) error {
	for _, name := range v.allFlows() { // one by one, so that the next holders get the notes
		if err := v.leaveFlow(ctx, name); err != nil {
			return err
		}
	}
	v.mu.Lock()
	clear(v.flows)
	v.touched = v.used.Add(-touchEvery)
	v.mu.Unlock()
	return ignoreProblem(v.caller.End(ctx))
}
