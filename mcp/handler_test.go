package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// guarded is a door of a server with credentials, on a listener.
func guarded(t *testing.T) (address string, credentials map[string]string) {
	t.Helper()
	j, err := (&memjournal.Store{}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.Open(t.Context(), shard.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	credentials = map[string]string{}
	file := filepath.Join(t.TempDir(), "credentials")
	var lines strings.Builder
	for _, name := range []string{"red", "blue"} {
		credential, line, err := server.NewCredential(
			interlock.Principal{Name: name, Roles: interlock.RoleAgent}, interlock.Namespace(name),
		)
		if err != nil {
			t.Fatal(err)
		}
		credentials[name] = credential
		lines.WriteString(line + "\n")
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := server.LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Shard: s, Credentials: known, Hosts: []string{"interlock.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(HandlerConfig{API: srv.HTTPHandler()})
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.Close()
		h.Close()
		_ = s.Close(context.Background())
	})
	return web.URL, credentials
}

// headerSet are the headers of a request, beside those of the protocol.
type headerSet map[string]string

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`

func post(t *testing.T, address, body string, set headerSet) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", oldRevision)
	for name, value := range set {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

func acquireCall(key string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"acquire","arguments":{"keys":` +
		`["` + key + `"],"wait_s":0}}}`
}

// A refusal of the API is the answer to each method of the protocol.
func TestRefusals(t *testing.T) {
	address, credentials := guarded(t)
	red := "Bearer " + credentials["red"]
	for _, one := range []struct {
		name   string
		set    headerSet
		status int
		code   interlock.Code
	}{
		{"no credential", nil, 401, interlock.CodeUnauthenticated},
		{"wrong credential", headerSet{"Authorization": "Bearer il_wrong"}, 401, interlock.CodeUnauthenticated},
		{"foreign host", headerSet{"Authorization": red, "Host": "evil.example"}, 403, interlock.CodeForeignHost},
		{"foreign page", headerSet{"Authorization": red, "Origin": "https://evil.example"}, 403, interlock.CodeForeignHost},
		{"other site", headerSet{"Authorization": red, "Sec-Fetch-Site": "cross-site"}, 403, interlock.CodeForeignHost},
		{"other namespace", headerSet{"Authorization": red, "Interlock-Namespace": "blue"}, 403, interlock.CodeForbidden},
	} {
		for _, body := range []string{listTools, acquireCall("k"), `{"jsonrpc":"2.0","id":1,"method":"initialize",` +
			`"params":{}}`, "{", ""} {
			status, text := post(t, address, body, one.set)
			var problem struct{ Code interlock.Code }
			_ = json.Unmarshal([]byte(text), &problem)
			if status != one.status || problem.Code != one.code {
				t.Errorf("%s: %.20s: status %d, %s", one.name, body, status, text)
			}
		}
	}
	for _, host := range []string{"interlock.example.com", "localhost:7420"} {
		if status, text := post(t, address, listTools, headerSet{"Authorization": red, "Host": host}); status != 200 {
			t.Errorf("host %s: status %d, %s", host, status, text)
		}
	}
}

// Agents with different credentials do not meet, also under the name and the session of the other.
func TestTenantsAreApart(t *testing.T) {
	address, credentials := guarded(t)
	for _, name := range []string{"red", "blue"} {
		set := headerSet{"Authorization": "Bearer " + credentials[name], agentHeader: "same", sessionHeader: "same"}
		if status, text := post(t, address, acquireCall("k"), set); status != 200 ||
			!strings.Contains(text, "You hold k.") {
			t.Errorf("%s: status %d, %s", name, status, text)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, address, nil)
	r.Header.Set("Authorization", "Bearer "+credentials["blue"])
	r.Header.Set(agentHeader, "same")
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != http.StatusNoContent {
		t.Fatal(err, res)
	}
	set := headerSet{"Authorization": "Bearer " + credentials["red"], agentHeader: "other"}
	if _, text := post(t, address, acquireCall("k"), set); !strings.Contains(text, `held by \\\"same\\\"`) {
		t.Errorf("the end of one session ended the other: %s", text)
	}
}

func TestBadBodies(t *testing.T) {
	address, credentials := guarded(t)
	set := headerSet{"Authorization": "Bearer " + credentials["red"]}
	for _, one := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"10 MiB", strings.Repeat("x", 10<<20), 413, "send at most 1 MiB"},
		{"no JSON", "{", 400, `"code":-32700,"message":"the message is not JSON`},
		{"empty", "", 400, "the message is not JSON"},
		{"other method", `{"jsonrpc":"2.0","id":1,"method":"leases/steal"}`, 200, `"code":-32601`},
		{"other notification", `{"jsonrpc":"2.0","method":"leases/steal"}`, 202, ""},
		{"unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steal"}}`, 200, "unknown tool"},
		{"params of a wrong type", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, 200, "error"},
		{
			"arguments of a wrong type", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"acquire",` +
				`"arguments":"k"}}`, 200,
			"The arguments of acquire must be an object, not a string.",
		},
	} {
		if status, text := post(t, address, one.body, set); status != one.status || !strings.Contains(text, one.want) {
			t.Errorf("%s: status %d, %.300s", one.name, status, text)
		}
	}
	if status, text := post(t, address, listTools, set); status != 200 || !strings.Contains(text, `"acquire"`) {
		t.Errorf("status %d, %s", status, text)
	}
}

// GET has no stream, and DELETE needs a conversation.
func TestOtherMethods(t *testing.T) {
	address, credentials := guarded(t)
	for method, want := range map[string]int{"GET": 405, "PUT": 405, "DELETE": 400} {
		r, _ := http.NewRequestWithContext(t.Context(), method, address, nil)
		r.Header.Set("Authorization", "Bearer "+credentials["red"])
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", method, res.StatusCode, want)
		}
	}
}

// An ended conversation does not go on, as the revisions with sessions want it.
func TestEndedConversation(t *testing.T) {
	address, credentials := guarded(t)
	set := headerSet{"Authorization": "Bearer " + credentials["red"], sessionHeader: "mine"}
	if status, text := post(t, address, acquireCall("k"), set); status != 200 || !strings.Contains(text, "You hold k.") {
		t.Errorf("status %d, %s", status, text)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, address, nil)
	for name, value := range set {
		r.Header.Set(name, value)
	}
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != http.StatusNoContent {
		t.Fatal(err, res)
	}
	if status, _ := post(t, address, listTools, set); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	set[sessionHeader] = "other"
	if status, text := post(t, address, acquireCall("k"), set); status != 200 || !strings.Contains(text, "You hold k.") {
		t.Errorf("status %d, %s", status, text)
	}
}

// A call is cancelled by a message of its conversation, although its stream stays open.
func TestCancelledByMessage(t *testing.T) {
	address, credentials := guarded(t)
	set := headerSet{"Authorization": "Bearer " + credentials["red"], agentHeader: "ann"}
	if _, text := post(t, address, acquireCall("k"), set); !strings.Contains(text, "You hold k.") {
		t.Fatal(text)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"acquire","arguments":{"keys":["k"],"wait_s":40},`+
			`"_meta":{"progressToken":1}}}`,
	))
	set = headerSet{
		"Authorization": set["Authorization"], "Content-Type": "application/json", sessionHeader: "mine",
		"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": oldRevision,
	}
	for name, value := range set {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := res.Body.Read(make([]byte, 4096)); n == 0 || err != nil { // the first progress: it stands in line
		t.Fatal(n, err)
	}
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	if status, text := post(t, address, cancelled, set); status != http.StatusAccepted {
		t.Fatalf("status %d, %s", status, text)
	}
	if rest, err := io.ReadAll(res.Body); err != nil || bytes.Contains(rest, []byte(`"result"`)) {
		t.Errorf("the call went on: %v\n%s", err, rest) // at the end of its wait it has a result
	}
	look := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"keys":["k"]}}}`
	_, text := post(t, address, look, set)
	if strings.Contains(text, "wait for it") || !strings.Contains(text, "held by") {
		t.Errorf("the key is %s", text)
	}
}

// A server that stands by refuses as its API does.
func TestStandby(t *testing.T) {
	active := func() server.Active { return server.Active{HTTP: "http://a:7420"} }
	standby, err := server.NewStandby(server.Config{}, active)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(HandlerConfig{API: standby.HTTPHandler()})
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.Close()
		h.Close()
	})
	status, text := post(t, web.URL, listTools, nil)
	if status != 503 || !strings.Contains(text, `"not_owner"`) || !strings.Contains(text, "http://a:7420") {
		t.Errorf("status %d, %s", status, text)
	}
}
