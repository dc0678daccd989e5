package securitytest

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

var doorAttacks = []attack{
	{
		82, "MCP past the checks of the API",
		"calls the methods of MCP from a page of another site, under a foreign Host, without a credential, with a wrong " +
			"one, and for another tenant's namespace",
		"the refusal that the API has for it: 401, 403 foreign_host or 403 forbidden", mcpRefusals,
		[]string{"mcp.TestRefusals"},
	},
	{
		83, "Another tenant's conversation by MCP",
		"names the agent, the session and the thread of another tenant, uses the ids of its lease and its ticket in every " +
			"tool that takes one, reads its resources, and ends its conversation",
		"another session, and the same answer as for an unknown id; the other tenant sees no change", mcpConversations,
		[]string{"mcp.TestTenantsAreApart"},
	},
	{
		84, "Hooks past the checks of the API",
		"sends events of each harness, and a skip, from a page of another site, under a foreign Host, without a " +
			"credential, with a wrong one, for another tenant's namespace, and a skip with an agent's credential",
		"the refusal that the API has for it: 401, 403 foreign_host or 403 forbidden; no edit is let pass", hookRefusals,
		[]string{"hook.TestBadRequests", "hook.TestCredentials"},
	},
	{
		85, "The session of another agent by hooks",
		"reports edits, ends of turns and the end of a session under the id that another agent's harness has for its " +
			"session, from another tenant and with another credential of the same tenant",
		"it is another session: edits are refused while the agent holds the file, and the agent keeps it", hookSessions,
		[]string{"hook.TestCredentials"},
	},
}

// mcpHeader are the headers that a client of MCP sends.
var mcpHeader = []string{
	"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25",
	"Interlock-Agent", "same", "Mcp-Session-Id", "same",
}

// mcp calls a method. The answer's text is whole.
func (s *site) mcp(t *testing.T, tenant, method, params string, header ...string) *answer {
	t.Helper()
	a := ask{
		method: "POST", path: "/mcp", as: s.secrets[tenant], header: append(header, mcpHeader...),
		body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params),
	}
	res, err := s.web.Do(s.request(t, a))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := &answer{t: t, what: "MCP " + method, status: res.StatusCode, header: res.Header, raw: string(text)}
	s.heard(out)
	return out
}

func mcpTool(name, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"threadId":"same"}}`, name, arguments)
}

func mcpRefusals(t *testing.T, s *site) {
	for _, method := range []string{
		"initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/read", "prompts/get", "no/method",
	} {
		for _, x := range []struct {
			tenant string
			header []string
			status int
			code   string
		}{
			{"", nil, 401, "unauthenticated"},
			{"", []string{"Authorization", "Bearer il_wrong"}, 401, "unauthenticated"},
			{rival, []string{"Host", "rebound.example"}, 403, "foreign_host"},
			{rival, []string{"Origin", "https://evil.example"}, 403, "foreign_host"},
			{rival, []string{"Sec-Fetch-Site", "cross-site"}, 403, "foreign_host"},
			{rival, []string{"Interlock-Namespace", acme}, 403, "forbidden"},
		} {
			got := s.mcp(t, x.tenant, method, mcpTool("acquire", `{"keys":["mcp:refused"]}`), x.header...)
			if got.status != x.status || !strings.Contains(got.raw, `"code":"`+x.code+`"`) {
				t.Errorf("%s with %v: %d %s", method, x.header, got.status, got.raw)
			}
		}
	}
}

func mcpConversations(t *testing.T, s *site) {
	take := func(tenant, key, outcome string) string {
		t.Helper()
		got := s.mcp(t, tenant, "tools/call", mcpTool("acquire", `{"keys":["`+key+`"],"wait_s":0}`))
		if !strings.Contains(got.raw, `"outcome":"`+outcome+`"`) {
			t.Fatalf("%s: %d %s", tenant, got.status, got.raw)
		}
		return got.raw
	}
	id := func(text, prefix string) string {
		at := strings.Index(text, `"`+prefix) + 1
		return text[at : at+34]
	}
	lease := id(take(acme, "mcp:one", "granted"), "l_")
	s.agent(t, acme, "POST", "/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"mcp:two"}]}`).want(200)
	ticket := id(take(acme, "mcp:two", "queued"), "t_")

	take(rival, "mcp:one", "granted")
	unknown := strings.Repeat("ab", 16)
	for tool, arguments := range map[string]string{
		"acquire": `{"lease":"` + lease + `"}`, "release": `{"lease":"` + lease + `"}`, "wait": `{"ticket":"` + ticket + `"}`,
		"commit": `{"writes":[{"key":"mcp:one","text":"x"}],"leases":["` + lease + `"]}`,
	} {
		known := s.mcp(t, rival, "tools/call", mcpTool(tool, arguments)).raw
		other := strings.NewReplacer(lease[2:], unknown, ticket[2:], unknown).Replace(arguments)
		strange := s.mcp(t, rival, "tools/call", mcpTool(tool, other)).raw
		if known != strange || !strings.Contains(known, `"isError":true`) {
			t.Errorf("%s:\n%s\n%s", tool, known, strange)
		}
	}
	if got := s.mcp(t, rival, "resources/read", `{"uri":"interlock://leases"}`); !strings.Contains(got.raw, `\"leases\"`) ||
		strings.Contains(got.raw, "mcp:two") {
		t.Errorf("the leases are %s", got.raw)
	}
	got := s.mcp(t, rival, "resources/read", `{"uri":"interlock://key/mcp:one"}`)
	if !strings.Contains(got.raw, `\"held\"`) {
		t.Errorf("the key is %s", got.raw)
	}
	got = s.mcp(t, rival, "resources/read", `{"uri":"interlock://key/mcp:two"}`)
	if !strings.Contains(got.raw, `\"free\"`) {
		t.Errorf("the key is %s", got.raw)
	}
	s.agent(t, rival, "DELETE", "/mcp", "", mcpHeader...).want(204)
	got = s.mcp(t, acme, "tools/call", mcpTool("acquire", `{"lease":"`+lease+`"}`))
	if !strings.Contains(got.raw, `"outcome":"kept"`) {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

// hookEvent is an event of a session of Claude Code.
func hookEvent(name string) string {
	return `{"session_id":"same-3f2a9c1e","hook_event_name":"` + name + `","cwd":"/w/hooked","tool_name":"Edit",` +
		`"tool_input":{"file_path":"/w/hooked/a.go"}}`
}

func hookRefusals(t *testing.T, s *site) {
	for path, body := range map[string]string{
		"claude-code": hookEvent("PreToolUse"), "codex": hookEvent("PreToolUse"),
		"gemini":   `{"session_id":"same","hook_event_name":"BeforeTool","cwd":"/w","tool_name":"write_file","tool_input":{}}`,
		"cursor":   `{"conversation_id":"same","hook_event_name":"beforeSubmitPrompt"}`,
		"copilot":  hookEvent("PreToolUse"),
		"opencode": `{"event":"tool.execute.before","sessionID":"same","tool":"edit","args":{"filePath":"/w/a"}}`,
		"skip":     `{"path":"/w/hooked/a.go"}`,
	} {
		for _, x := range []struct {
			secret string
			header []string
			status int
			code   string
		}{
			{"", nil, 401, "unauthenticated"},
			{"il_wrong", nil, 401, "unauthenticated"},
			{s.secrets[rival], []string{"Host", "rebound.example"}, 403, "foreign_host"},
			{s.secrets[rival], []string{"Origin", "https://evil.example"}, 403, "foreign_host"},
			{s.secrets[rival], []string{"Sec-Fetch-Site", "cross-site"}, 403, "foreign_host"},
			{s.secrets[rival], []string{"Interlock-Namespace", acme}, 403, "forbidden"},
		} {
			s.send(t, ask{
				method: "POST", path: "/v1/hooks/" + path, body: body, header: x.header, as: x.secret,
			}).want(x.status, x.code)
		}
	}
	s.agent(t, rival, "POST", "/v1/hooks/skip", `{"path":"/w/hooked/a.go"}`).want(403, "forbidden")
}

func hookSessions(t *testing.T, s *site) {
	post := func(secret, event string) *answer {
		t.Helper()
		return s.send(t, ask{
			method: "POST", path: "/v1/hooks/claude-code?wait_s=0", body: hookEvent(event), as: secret,
			header: []string{"X-Interlock-Host", "laptop", "X-Interlock-Root", "/w/hooked", "X-Interlock-Repo", "hooked"},
		})
	}
	post(s.secrets[acme], "PreToolUse").want(204)
	for _, secret := range []string{s.operators[acme], s.secrets[rival]} {
		got := post(secret, "PreToolUse")
		switch {
		case secret == s.secrets[rival]: // the file of its own namespace
			got.want(204)
		case !strings.Contains(got.raw, "a.go is held by"):
			t.Errorf("another credential of the tenant: %d %s", got.status, got.raw)
		}
		post(secret, "Stop").want(204)
		post(secret, "SessionEnd").want(204)
	}
	key := "/v1/keys/repo:hooked/a.go"
	if got := s.agent(t, acme, "GET", key, "").want(200); !strings.Contains(got.raw, `"agent":"claude-code/3f2a9c1e"`) {
		t.Errorf("the agent has lost its file: %s", got.raw)
	}
	post(s.secrets[acme], "SessionEnd").want(204)
	s.agent(t, acme, "GET", key, "").want(200)
}
