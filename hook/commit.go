package hook

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/api"
)

// In a shared checkout a commit, a stash or a reset takes the files of all agents. What follows finds those of one: its
// own are the files that it holds, and those that it was the last one to write.

// maxOwn bounds the files that a command names.
const maxOwn = 200

// commits reports whether an effect takes files into a commit.
func commits(effect shell.Effect) bool {
	return effect == shell.Stages || effect == shell.Commits || effect == shell.Records
}

// ownFiles returns the agent's own files in the checkout around a folder, relative to that folder. What another agent
// has been granted since is none, although it may not have written it yet.
func (v *visit) ownFiles(ctx context.Context, dir string) (names []string) {
	if dir = shell.Top(dir, v.locator.top); dir == "" {
		return nil
	}
	top := v.locator.checkout(dir)
	root := v.locator.file(top)
	set, taken, own := map[string]bool{}, map[string]bool{}, v.own()
	_, err := v.holderBelow(ctx, root, func(h *api.Holder) bool {
		if own == "" || h.Session != own {
			key := selfOf(string(h.Key))
			taken[key] = true
			if file, inside := fileAround(key); inside {
				taken[file] = true
			}
		}
		return false
	})
	if err != nil {
		return nil // the refusal does without names
	}
	add := func(key interlock.Key, name string) {
		inside := strings.HasPrefix(string(key), string(root.Key)+"/") && keyOf(string(root.Key), name) == key
		if inside && !taken[string(key)] && len(set) < maxOwn {
			set[name] = true
		}
	}
	v.memory.writtenBy(v.conversation, add)
	for _, flow := range v.allFlows() {
		for _, held := range v.caller.Leases(flow) {
			for _, key := range held.Keys {
				key = selfOf(key)
				name := strings.TrimPrefix(key, string(root.Key)+"/")
				if _, inside := fileAround(name); !inside && !strings.ContainsAny(name, "%~") {
					add(interlock.Key(key), name)
				}
			}
		}
	}
	for name := range set {
		rel, err := filepath.Rel(filepath.FromSlash(shell.Clean(dir)), filepath.FromSlash(path.Join(top, name)))
		if err == nil {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	slices.Sort(names)
	return names
}

// writtenBy calls do with each file that a conversation was the last one to write.
func (m *memory) writtenBy(c *conversation, do func(interlock.Key, string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, half := range m.written {
		for at, w := range half {
			space, key, _ := strings.Cut(at, "\x00")
			if _, newer := m.written[0][at]; w.by == c && space == c.space && (i == 0 || !newer) {
				do(interlock.Key(key), w.name)
			}
		}
	}
}

// remedy is a command that does for the agent's own files, or in a checkout of its own, what this one does at large.
func (v *visit) remedy(ctx context.Context, tree shell.Tree) string {
	ownFiles := func(dir string) []string { return v.ownFiles(ctx, dir) }
	dir := v.ev.Dir
	if dir == "" {
		dir = tree.Path
	}
	top, here := v.locator.checkout(tree.Path), v.locator.checkout(dir)
	git := "git"
	if top != here {
		git, dir = "git -C "+shell.Quote(top), top
	}
	names := ownFiles(dir)
	if tree.Effect == shell.Stashes || tree.Effect == shell.Resets {
		names = names[:min(len(names), v.o.files)] // they are leased
	}
	var own string
	for _, name := range names {
		own += " " + shell.Pathspec(name)
	}
	switch tree.Effect {
	case shell.Stages, shell.Commits, shell.Records:
		if command, ok := shell.Narrow(v.ev.Command, v.ev.Dir, ownFiles); ok {
			return command
		}
		fallthrough
	case shell.Amends:
		commit := strings.Replace("git commit --only -m MESSAGE --", "git", git, 1)
		if own == "" {
			return commit + " FILE..."
		}
		return git + " add -A --" + own + " && " + commit + own
	case shell.Stashes, shell.Resets:
		if own == "" {
			return git + " stash push -- FILE..."
		}
		return git + " add -A --" + own + " && " + git + " stash push --" + own
	case shell.Moves, shell.Switches:
		agent := v.caller.Agent()
		return git + " worktree add " + shell.Quote(top+"-"+agent[strings.LastIndexByte(agent, '/')+1:])
	case shell.Changes:
	}
	return ""
}

// narrow takes another command for the one of the event.
func (v *visit) narrow(command string) bool {
	reading := v.locator.resolve(shell.Read(command, v.ev.Dir))
	if !slices.Equal(reading.Writes, v.ev.Writes) || reading.Unknown != v.ev.Unknown {
		return false
	}
	v.ev.Trees = reading.Trees
	return true
}

// index is what agents have brought into the indexes of checkouts since the last commit of each. A restart forgets it.
type index struct {
	mu     sync.Mutex
	staged map[string]stage // by namespace and key of the file or folder
}

type stage struct {
	by     *conversation
	folder bool
	at     time.Time
}

const maxStaged = 10_000

func newIndex() *index { return &index{staged: map[string]stage{}} }

// has reports whether the index of a checkout may have contents of a file that the agent did not mean: another agent
// has staged it, or a folder above it was staged.
func (x *index) has(c *conversation, root, file interlock.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := selfOf(string(file))
	if s, ok := x.staged[c.space+"\x00"+key]; ok && s.by != c {
		return true
	}
	if file, inside := fileAround(key); inside {
		if s, ok := x.staged[c.space+"\x00"+file]; ok && s.by != c {
			return true
		}
	}
	for at := key; at != ""; {
		if s, ok := x.staged[c.space+"\x00"+at]; ok && (s.folder || at != key) {
			return true
		}
		if at == string(root) {
			break
		}
		at = at[:max(strings.LastIndexByte(at, '/'), 0)]
	}
	return false
}

// stage notes what a command brings into the index.
func (v *visit) stage() {
	for _, tree := range v.ev.Trees {
		if tree.Effect != shell.Stages {
			continue
		}
		folder := tree.Path
		if tree.Whole {
			folder = v.locator.checkout(folder)
		}
		key := v.locator.file(folder).Key
		v.index.mu.Lock()
		forgetOldest(v.index.staged, maxStaged, func(s stage) time.Time { return s.at })
		large := tree.Whole || path.Ext(folder) == "" // what may be a folder
		v.index.staged[v.space+"\x00"+string(key)] = stage{v.conversation, large, time.Now()}
		v.index.mu.Unlock()
	}
}

// committed forgets what was in the index before a commit of all of it.
func (v *visit) committed() {
	if v.ev.Kind != AfterTool {
		return
	}
	for _, tree := range v.ev.Trees {
		if !tree.Whole || tree.Effect != shell.Records && tree.Effect != shell.Commits {
			continue
		}
		prefix := v.space + "\x00" + string(v.locator.file(v.locator.checkout(tree.Path)).Key)
		v.index.mu.Lock()
		for at := range v.index.staged {
			if at == prefix || strings.HasPrefix(at, prefix+"/") {
				delete(v.index.staged, at)
			}
		}
		v.index.mu.Unlock()
	}
}
