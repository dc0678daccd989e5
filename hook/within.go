package hook

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// An agent may hold a file by another door: by the lease around its process (interlock run, a task), or by one that it
// took with a tool of the MCP server. That is its own, and the edit goes on under it. An agent that knows the secret id
// of a lease may act for its holder, so the id is the proof: the environment has that of the first, and the answer of
// the tool that of the second. Files under such a lease are leased inside of it, so that sub-agents exclude each other:
//
//	lease 12 on repo:shop  ─►  src/auth.ts is within:12/repo:shop/src/auth.ts

const (
	withinMark = "within:"
	maxTaken   = 16 // leases of a flow that tools have returned
)

// self is the key of the file itself, wherever it is leased.
func (f File) self() interlock.Key { return interlock.Key(selfOf(string(f.Key))) }

// selfOf returns a key as it is outside of all leases.
func selfOf(key string) string {
	if rest, inside := strings.CutPrefix(key, withinMark); inside {
		if _, key, ok := strings.Cut(rest, "/"); ok {
			return key
		}
	}
	return key
}

// outer returns the leases in force that the agent has by other doors. A sub-agent has those of the main agent, too,
// which waits for it.
func (v *visit) outer(ctx context.Context) (list []api.Lease) {
	ids := leasesIn(v.around)
	for _, name := range []string{v.flowName(), mainFlow} {
		v.with(name, func(f *flow) { ids = append(ids, f.taken...) })
	}
	var over []api.LeaseID
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		var got api.Granted
		err := v.get(ctx, "/v1/leases/"+url.PathEscape(id), nil, &got)
		switch state := got.Lease.State; {
		case err == nil && (state == interlock.Held.String() || state == interlock.Soft.String()):
			list = append(list, got.Lease)
		case ignoreProblem(err) == nil:
			over = append(over, id)
		}
	}
	for _, name := range []string{v.flowName(), mainFlow} {
		v.with(name, func(f *flow) {
			f.taken = slices.DeleteFunc(f.taken, func(id api.LeaseID) bool { return slices.Contains(over, id) })
		})
	}
	return list
}

// within moves the files that the agent holds by other doors into their leases.
func (v *visit) within(files []File, leases []api.Lease) []File {
	for i, file := range files {
		for k := range leases {
			if covers(&leases[k], file.Key) || covers(&leases[k], file.Shared) {
				fence := strconv.FormatUint(uint64(leases[k].Fence), 10)
				files[i].Key, files[i].Shared = keyOf(withinMark+fence, string(file.Key)), ""
				break
			}
		}
	}
	return files
}

// covers reports whether a lease excludes all others from a key.
func covers(lease *api.Lease, key interlock.Key) bool {
	return slices.ContainsFunc(lease.Claims, func(c api.Claim) bool {
		return c.Mode == interlock.Exclusive.String() && (c.Key == key || strings.HasPrefix(string(key), string(c.Key)+"/"))
	})
}

// giveWay releases the agent's leases on keys that it is about to take by another door, and leaves their lines: it
// would wait for itself there.
func (v *visit) giveWay(ctx context.Context, keys []string) error {
	var files []File
	for _, key := range keys {
		files = append(files, File{Key: interlock.Key(key)})
	}
	var tickets []api.TicketID
	v.with(v.flowName(), func(f *flow) {
		for ticket, waits := range f.waits {
			if slices.ContainsFunc(waits, func(file File) bool { return slices.ContainsFunc(keys, file.meets) }) {
				tickets = append(tickets, ticket)
				delete(f.waits, ticket)
				delete(f.told, ticket)
			}
		}
	})
	slices.Sort(tickets)
	for _, ticket := range tickets {
		if err := ignoreProblem(v.caller.Leave(ctx, ticket)); err != nil {
			return err
		}
	}
	for _, held := range v.caller.Leases(v.flowName()) {
		if slices.ContainsFunc(held.Keys, func(key string) bool { return overlaps(key, files) }) {
			if err := v.release(ctx, v.flowName(), held); err != nil {
				return err
			}
		}
	}
	return v.yield(ctx, files)
}

// took notes the leases that a tool has returned.
func (v *visit) took() {
	if len(v.ev.Taken) == 0 {
		return
	}
	v.with(v.flowName(), func(f *flow) {
		for _, id := range v.ev.Taken {
			f.taken = append(slices.DeleteFunc(f.taken, func(one api.LeaseID) bool { return one == id }), id)
		}
		f.taken = f.taken[max(0, len(f.taken)-maxTaken):]
	})
}

var leaseID = regexp.MustCompile(`\bl_[0-9a-f]{32}\b`)

// leasesIn returns the ids of leases in a text, the first few.
func leasesIn(text string) []api.LeaseID { return leaseID.FindAllString(text, maxTaken) }

// mcpTool returns which tool of Interlock's MCP server a harness means: acquire or wait; "" for another one. The name
// has that of the server before it or behind it, as each harness joins them, or stands alone.
func mcpTool(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	if len(words) == 0 {
		return ""
	}
	last := words[len(words)-1]
	if last != "acquire" && last != "wait" {
		return ""
	}
	for _, word := range words[:len(words)-1] {
		if word != "mcp" && word != "interlock" {
			return ""
		}
	}
	return last
}

// mcp fills in what a call of Interlock's MCP server takes, before it, and took, after it.
func (ev *Event) mcp(name string, in toolInput, response json.RawMessage) {
	switch tool := mcpTool(name); {
	case tool == "":
	case ev.Kind == AfterTool:
		ev.Taken = leasesIn(string(response))
	case ev.Kind == BeforeTool && tool == "acquire":
		_ = json.Unmarshal(in["keys"], &ev.Takes) // what is no list of keys is refused by the tool
	}
}
