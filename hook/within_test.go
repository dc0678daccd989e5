package hook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// hold takes a lease by another door, as interlock run and the MCP server do.
func (r *rig) hold(agentName string, keys ...api.Key) (*agent.Caller, api.LeaseID) {
	r.Helper()
	other := r.handler.hub.Caller(agent.Identity{Key: "by " + agentName, Agent: agentName})
	request := api.AcquireRequest{OnConflict: "wait"}
	for _, key := range keys {
		request.Claims = append(request.Claims, api.ClaimRequest{Key: key})
	}
	reply, err := other.Acquire(r.Context(), request, "")
	if err != nil {
		r.Fatal(err)
	}
	if reply.Granted == nil {
		return other, ""
	}
	return other, reply.Granted.Lease.ID
}

// mcp calls a tool of the MCP server.
func (c *coder) mcp(event, tool, call string, input map[string]any, answer string) (deny, tell string) {
	c.Helper()
	fields := map[string]any{"tool_name": "mcp__interlock__" + tool, "tool_input": input, "tool_use_id": call}
	if answer != "" {
		fields["tool_response"] = []any{map[string]any{"type": "text", "text": answer}}
	}
	return c.hook(event, fields)
}

// An edit goes on under the lease around the agent's process, on the file or above it. Another agent is refused, and
// so are two sub-agents that want one file.
func TestUnderALeaseOfItsOwn(t *testing.T) {
	for i, key := range []api.Key{
		"repo:web", "repo:web/src", "repo:web/src/auth.ts", "repo:web", "repo:web/src/auth.ts", "repo:web@fix-1/src",
	} {
		inBubble(t, func(r *rig) {
			r.query = "?wait_s=0&mode=strict"
			if i >= 3 {
				r.repo = "web@fix-1"
			}
			run, lease := r.hold("coder-1", key)
			r.around = "l_00000000000000000000000000000001 " + lease // a run inside a run that is over
			me := r.coder("session-1")
			if tell := me.edit("/w/web/src/auth.ts"); tell != "" {
				r.Errorf("%s: it was told %q", key, tell)
			}
			if deny, _ := me.tool("PreToolUse", "Bash", "c", map[string]any{"command": "git checkout ."}); deny != "" {
				r.Errorf("%s: %s", key, deny)
			}
			ann, ben := me.sub("ann"), me.sub("ben")
			ann.edit("/w/web/src/auth.ts") // to which the main agent yields
			deny, _ := ben.before("/w/web/src/auth.ts")
			if !strings.Contains(deny, "sub-agent ann") {
				r.Errorf("%s: two sub-agents edit one file: %q", key, deny)
			}
			ann.hook("SubagentStop", nil)
			ben.edit("/w/web/src/auth.ts")

			r.around = ""
			deny, _ = r.coder("session-2").before("/w/web/src/auth.ts")
			if !strings.Contains(deny, "held by coder-1") {
				r.Errorf("%s: another agent may edit: %q", key, deny)
			}
			r.around = lease
			if err := run.Release(r.Context(), lease, api.ReleaseRequest{}); err != nil {
				r.Error(err)
			}
			if deny, _ := me.before("/w/web/src/auth.ts"); !strings.Contains(deny, "claude-code/ession-2") {
				r.Errorf("%s: it may edit under a lease that is over: %q", key, deny)
			}
		})
	}
}

// A lease that an agent took by the MCP server is its own, and that of its sub-agents, until it is released.
func TestUnderALeaseOfMCP(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		me := r.coder("session-1")
		server, lease := r.hold("claude-code@vm", "repo:web/src")
		keys := map[string]any{"keys": []string{"repo:web/src"}}
		answer, _ := json.Marshal(map[string]any{"outcome": "granted", "lease": lease})
		if deny, _ := me.before("/w/web/src/auth.ts"); deny == "" {
			r.Error("an agent edits under a lease that it does not know")
		}
		me.mcp("PostToolUse", "acquire", "call", keys, string(answer))
		me.edit("/w/web/src/auth.ts")
		me.sub("ann").edit("/w/web/src/auth.ts")
		if deny, _ := me.sub("ben").before("/w/web/src/auth.ts"); !strings.Contains(deny, "sub-agent ann") {
			r.Errorf("two sub-agents edit one file: %q", deny)
		}
		other := r.coder("session-2")
		// Another agent, by another tool, that shows the id of the lease, has not got it.
		other.tool("PostToolUse", "Bash", "echo", map[string]any{"command": "echo " + lease})
		if deny, _ := other.before("/w/web/src/auth.ts"); !strings.Contains(deny, "held by claude-code@vm") {
			r.Errorf("another agent: %q", deny)
		}
		if err := server.Release(r.Context(), lease, api.ReleaseRequest{}); err != nil {
			r.Error(err)
		}
		me.before("/w/web/src/other.ts")
		me.with(func(f *flow) {
			if len(f.taken) != 0 {
				r.Errorf("a lease that is over is remembered: %v", f.taken)
			}
		})
	})
}

// What an agent holds and waits for by its hooks is no obstacle to the same agent at the MCP server.
func TestGivesWayToMCP(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		me := r.coder("session-1")
		me.edit("/w/web/src/auth.ts")
		me.edit("/w/web/docs/a.md")
		keys := map[string]any{"keys": []string{"repo:web/src"}}
		if deny, tell := me.mcp("PreToolUse", "acquire", "call", keys, ""); deny+tell != "" {
			r.Errorf("%s %s", deny, tell)
		}
		server, lease := r.hold("claude-code@vm", "repo:web/src")
		if lease == "" {
			r.Fatal("the agent waits for itself")
		}
		if deny, _ := r.coder("session-2").before("/w/web/docs/a.md"); deny == "" {
			r.Error("it gave up another file, too")
		}

		other := r.coder("session-2")
		if deny, _ := other.before("/w/web/src/auth.ts"); deny == "" {
			r.Error("another agent edits")
		}
		other.mcp("PreToolUse", "acquire", "call", keys, "")
		if err := server.Release(r.Context(), lease, api.ReleaseRequest{}); err != nil {
			r.Error(err)
		}
		if _, lease := r.hold("other@vm", "repo:web/src"); lease == "" {
			r.Error("an agent at the MCP server waits behind its own place in line")
		}
	})
}

func TestMCPTool(t *testing.T) {
	for name, want := range map[string]string{
		"mcp__interlock__acquire": "acquire", "mcp_interlock_wait": "wait", "MCP:acquire": "acquire", "acquire": "acquire",
		"interlock_acquire": "acquire", "interlock-wait": "wait", "mcp__interlock__release": "", "mcp__bank__acquire": "",
		"": "", "Edit": "", "acquire_all": "",
	} {
		if got := mcpTool(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// with looks into the memory of the agent.
func (c *coder) with(do func(*flow)) {
	c.handler.memory.conversation("", "", c.session).with(mainFlow, do)
}

// setAround sets what a process within interlock run sends.
func (r *rig) setAround(h http.Header) {
	if r.around != "" {
		h.Set("X-Interlock-Lease", r.around)
	}
}

// Agents in two copies do not wait for each other, and both wait for a lease by the name of the repository.
func TestCopiesOfARepository(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		one, two := r.coder("session-1"), r.coder("session-2")
		in := func(me *coder, copied string) *coder {
			r.repo = copied
			return me
		}
		in(one, "web@1").edit("a")
		in(two, "web@2").edit("a")
		if deny := two.bash("git checkout ."); deny != "" {
			r.Errorf("a change at large waits for another copy: %s", deny)
		}
		if _, lease := r.hold("coder-1", "repo:web/a"); lease != "" {
			r.Error("the file is leased by name while it is edited in its copies")
		}
		r.hold("coder-2", "repo:web/src")
		for _, copied := range []string{"web@1", "web@2"} {
			if deny, _ := in(two, copied).before("src/b"); !strings.Contains(deny, "held by coder-2") {
				r.Errorf("%s: an edit below a lease by name: %q", copied, deny)
			}
		}
		if deny := two.bash("git checkout ."); !strings.Contains(deny, "coder-2") {
			r.Errorf("a change at large over a lease by name: %q", deny)
		}
		// The files of a worktree are free once it is removed, and the session's other ones are not.
		in(one, "web@1").edit("b")
		one.hook("WorktreeRemove", map[string]any{"worktree_path": "/w/web"})
		three := r.coder("session-3")
		three.edit("b")
		if deny, _ := in(three, "web@2").before("a"); deny == "" {
			r.Error("the end of a worktree frees files of another copy")
		}
	})
}

// A copy keeps the name that it was first known by, when its folder or the address of its remote changes.
func TestNameOfACopy(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		r.repo = "web@1f"
		r.coder("session-1").edit("a")
		r.repo = "shop@1f"
		if deny, _ := r.coder("session-2").before("a"); deny == "" {
			r.Error("a copy with a new name is another one")
		}
		r.repo = "web@2f"
		r.coder("session-3").edit("a")
	})
}
