package securitytest

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/server"
)

// reservedKeys are keys of a merge queue, as agents would forge them.
var reservedKeys = []string{"merge:web/main", "merge:web/main/submission/a", "verdict:web/0123/unit"}

// settings are the operations that change a queue or a namespace and none of its tasks: operators pause merge queues.
var settings = []string{"setQueue", "deleteQueue", "pauseQueue", "drainQueue", "resumeQueue", "deleteNamespace"}

// reach is what a credential has done to the keys and queues of the merge queue.
type reach struct{ claims, writes, submits, checks, merges bool }

// reached finds that out with a credential of all roles. There is one task in each queue before.
func (s *site) reached(t *testing.T, all string) (r reach) {
	t.Helper()
	get := func(path string) string {
		return s.send(t, ask{method: "GET", path: path, as: all}).want(200).raw
	}
	for _, prefix := range []string{"merge:", "verdict:"} {
		q := "?prefix=" + url.QueryEscape(prefix)
		has := func(text string) bool { return strings.Contains(text, `"`+prefix) }
		r.claims = r.claims || has(get("/v1/leases"+q)) || has(get("/v1/tickets"+q))
		r.writes = r.writes || has(get("/v1/state"+q))
	}
	r.submits = strings.Count(get("/v1/tasks?queue=check.web.unit"), `"queue":"check.web.unit"`) > 1
	running := func(queue string) bool {
		return strings.Contains(get("/v1/tasks?queue="+queue), `"state":"running"`)
	}
	r.checks, r.merges = running("check.web.unit"), running("merge.web.main")
	return r
}

// TestReserved tries each HTTP operation with each way to name a key or a queue, the Redis port and MCP, for a
// credential of each role: only a merger claims and writes what the merge queue decides by, and submits checks; only it
// and a checker take checks, and it alone takes submissions.
func TestReserved(t *testing.T) {
	s := newSite(t)
	callers := s.callers(t)
	lines, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	all, line, err := server.NewCredential(
		interlock.Principal{Name: "all-roles", Roles: interlock.AllRoles &^ interlock.RoleWorker}, acme,
	)
	if err != nil {
		t.Fatal(err)
	}
	every, more, err := server.NewCredential(
		interlock.Principal{Name: "every-queue", Roles: interlock.RoleWorker, Queues: []string{"*"}}, acme,
	)
	if err != nil {
		t.Fatal(err)
	}
	callers = append(callers, caller{role: "worker", secret: every})
	s.reload(t, string(lines)+line+"\n"+more+"\n")
	for _, queue := range []string{"merge.web.main", "check.web.unit"} {
		s.send(t, ask{method: "PUT", path: "/v1/queues/" + queue, body: `{}`, as: all}).want(200)
		s.send(t, ask{method: "POST", path: "/v1/tasks", body: `{"queue":"` + queue + `"}`, as: all}).want(202)
	}
	rights := map[string]reach{
		"checker": {checks: true},
		"merger":  {claims: true, writes: true, submits: true, checks: true, merges: true},
	}
	// The two with rights come last, because what they do stays.
	slices.SortStableFunc(callers, func(a, b caller) int {
		order := map[string]int{"checker": 1, "merger": 2}
		return order[a.role] - order[b.role]
	})
	if got := s.reached(t, all); got != (reach{}) {
		t.Fatalf("before any call: %+v", got)
	}
	for _, c := range callers {
		if c.secret != "" && c.asks == "" {
			w := s.wire(t, "", "")
			w.do("AUTH", "same", c.secret)
			for _, key := range reservedKeys {
				w.do("SET", key, "x", "NX", "PX", "600000")
				s.send(t, ask{
					method: "POST", path: "/mcp", as: c.secret, header: mcpHeader,
					body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` +
						mcpTool("acquire", `{"keys":["`+key+`"],"wait_s":0}`) + `}`,
				})
			}
			if got := s.reached(t, all); got.claims != (c.role == "merger") {
				t.Fatalf("role %q reaches %+v by the Redis port or MCP", c.role, got)
			}
		}
		for _, op := range s.operations(t) {
			if op.open || op.process || op.endless || slices.Contains(settings, op.id) {
				continue
			}
			for _, tr := range op.trials() {
				for i, key := range reservedKeys {
					w := absent()
					w["key"], w["queue"] = key, []string{"merge.web.main", "check.web.unit"}[i%2]
					if !strings.Contains(tr.body, "{key}") {
						tr.body = strings.NewReplacer(`"g:1"`, `"{key}"`, `"g:doc"`, `"{key}"`).Replace(tr.body)
					}
					a := op.call(tr, w, c.secret)
					if c.asks != "" {
						a.header = append(a.header, "Interlock-Namespace", c.asks)
					}
					s.send(t, a)
				}
			}
			if right := rights[c.role]; c.role != "merger" {
				if got := s.reached(t, all); got != right && got != (reach{}) {
					t.Fatalf("role %q reaches %+v by %s", c.role, got, op.id)
				}
			}
		}
		if got := s.reached(t, all); got != rights[c.role] {
			t.Errorf("role %q reaches %+v, and is to reach %+v", c.role, got, rights[c.role])
		}
	}
}
