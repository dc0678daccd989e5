package mcp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/agent"
)

func TestLook(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		if free := ben.call("free", "look", keys("account:1")); free.Message != "account:1 is free: acquire takes it." ||
			free.Version != "0" {
			t.Errorf("answer %s", free.text)
		}
		lease := ann.call("granted", "acquire", arguments{"keys": []string{"account:1"}, "purpose": "refund"}).Lease
		ben.call("queued", "acquire", arguments{"keys": []string{"account:1"}, "wait_s": 0})
		held := ben.call("held", "look", keys("account:1"))
		if len(held.Holders) != 1 || held.Holders[0].Purpose != "refund" ||
			!strings.Contains(held.Message, "1 agent waits for it") {
			t.Errorf("answer %s", held.text)
		}
		both := ben.call("seen", "look", keys("account:1", "account:2"))
		if len(both.Rows) != 2 || !strings.HasPrefix(both.Rows[0], `account:1: held by "ann" for `) ||
			both.Rows[1] != "account:2: free" {
			t.Errorf("answer %s", both.text)
		}
		if below := ben.call("seen", "look", arguments{"prefix": "account:"}); len(below.Rows) != 1 ||
			below.Rows[0] != both.Rows[0] {
			t.Errorf("answer %s", below.text)
		}
		if mine := ann.call("seen", "look", arguments{}); len(mine.Rows) != 1 || !strings.Contains(mine.Rows[0], lease) {
			t.Errorf("answer %s", mine.text)
		}
		if none := ben.call("seen", "look", nil); none.Message != "You hold no lease. You wait with 1 ticket." {
			t.Errorf("answer %s", none.text)
		}
		var many []string
		for i := range 32 {
			many = append(many, fmt.Sprintf("some/long/path/of/a/repository/file-%d.go", i))
		}
		if a := ben.call("seen", "look", keys(many...)); len(a.Rows) < 4 || len(a.Rows) > 31 ||
			countTokens(t, a.text) > 300 {
			t.Errorf("%d rows with %d tokens", len(a.Rows), countTokens(t, a.text))
		}
	})
}

func TestCommit(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		write := func(version string, balance int) arguments {
			return arguments{
				"reads":  []any{arguments{"key": "account:1", "version": version}},
				"writes": []any{arguments{"key": "account:1", "put": arguments{"balance": balance}}}, "note": "late fee",
			}
		}
		first := ann.call("committed", "commit", write("0", 100))
		seen := ben.call("free", "look", arguments{"keys": []string{"account:1"}, "documents": true})
		if seen.Version != first.Version || len(seen.Documents) != 1 ||
			string(seen.Documents[0].Value) != `{"balance":100}` {
			t.Errorf("answer %s", seen.text)
		}
		second := ann.call("committed", "commit", write(first.Version, 96))
		stale := ben.call("stale", "commit", write(seen.Version, 50))
		if len(stale.Changes) != 1 || stale.Changes[0].Version != second.Version || stale.Changes[0].Agent != "ann" ||
			stale.Changes[0].Note != "late fee" || stale.Changes[0].Diff != "replace /balance 96;" || stale.Data != dataMark {
			t.Errorf("answer %s", stale.text)
		}
		ben.call("committed", "commit", write(stale.Changes[0].Version, 46))
		ben.call("stale", "commit", write("0", 1))
		large := strings.Repeat("x", maxDocuments)
		ann.call(
			"committed", "commit",
			arguments{"writes": []any{arguments{"key": "large", "text": large}, arguments{"key": "small", "text": "s"}}},
		)
		docs := ben.call("seen", "look", arguments{"keys": []string{"small", "large"}, "documents": true}).Documents
		if len(docs) != 2 || *docs[0].Text != "s" || !docs[1].TooLarge || docs[1].Text != nil {
			t.Errorf("documents %+v", docs)
		}
		read, err := ben.ReadResource(r.Context(), &sdk.ReadResourceParams{URI: keyURI + "large"})
		if err != nil || !strings.Contains(read.Contents[0].Text, large) {
			t.Errorf("the resource has no whole document: %v", err)
		}
	})
}

func TestEffect(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(newRevision, "ben")
		claim := arguments{
			"do":        "claim",
			"tool":      "stripe.charge",
			"target":    "customer:12",
			"arguments": arguments{"amount": 4},
		}
		first := ann.call("claimed", "effect", claim)
		if again := ann.call("in_progress", "effect", claim); !strings.Contains(again.Message, "You claimed it") {
			t.Errorf("a second claim of the same agent reads %q", again.Message)
		}
		if busy := ben.call("in_progress", "effect", claim); !strings.Contains(busy.Message, `"ann" claimed it`) {
			t.Errorf("answer %s", busy.text)
		}
		ann.call("done", "effect", arguments{"do": "done", "effect": first.Effect, "result": arguments{"charge": "ch_1"}})
		if done := ben.call("done", "effect", claim); string(done.Result) != `{"charge":"ch_1"}` || done.Data != dataMark {
			t.Errorf("answer %s", done.text)
		}
		claim["target"] = "customer:13"
		ann.call(
			"unknown", "effect",
			arguments{"do": "unknown", "effect": ann.call("claimed", "effect", claim).Effect, "reason": "time-out"},
		)
		if unknown := ben.call("unknown", "effect", claim); len(unknown.Notes) != 1 || unknown.Notes[0].Text != "time-out" {
			t.Errorf("answer %s", unknown.text)
		}
		claim["target"] = "customer:14"
		ann.call("free", "effect", arguments{"do": "cancel", "effect": ann.call("claimed", "effect", claim).Effect})
		ben.call("claimed", "effect", claim)
	})
}

func TestSend(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann := r.overHTTP(newRevision, "ann")
		r.put("/v1/queues/mail", `{}`)
		sent := ann.call("waiting", "send", arguments{"queue": "mail", "kind": "welcome", "body": arguments{"to": 12}})
		began := time.Now()
		still := ann.call("waiting", "wait", arguments{"ticket": sent.Ticket, "wait_s": 12})
		if took := time.Since(began); took < 12*time.Second || took > 13*time.Second ||
			!strings.HasPrefix(still.Message, "It waits for a worker.") {
			t.Errorf("after %v: %s", took, still.text)
		}
		ann.call("scheduled", "send", arguments{"queue": "mail", "kind": "later", "in_s": 60})
		gone := ann.call("cancelled", "wait", arguments{"ticket": sent.Ticket, "leave": true})
		if gone.Message != "It was cancelled." {
			t.Errorf("answer %s", gone.text)
		}
		ann.call("no_writer", "send", arguments{"to": "account:1", "kind": "deposit"})
	})
}

// put makes a call of the API.
func (r *rig) put(path, body string) {
	r.Helper()
	req, _ := http.NewRequestWithContext(r.Context(), http.MethodPut, "http://localhost"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	res, err := agent.Local(r.api.Handler).RoundTrip(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode > 299 {
		r.Fatalf("%s", bytes.TrimSpace(text))
	}
}

func TestResourcesAndPrompt(t *testing.T) {
	inBubble(t, func(r *rig) {
		ann, ben := r.overHTTP(newRevision, "ann"), r.overHTTP(oldRevision, "ben")
		lease := ann.call("granted", "acquire", arguments{"keys": []string{"repo:web/a b"}, "purpose": "fix"}).Lease
		read := func(c *client, uri string) string {
			t.Helper()
			res, err := c.ReadResource(r.Context(), &sdk.ReadResourceParams{URI: uri})
			if err != nil {
				t.Fatal(err)
			}
			if res.TTLMs != 0 || c == ann && res.CacheScope != "private" {
				t.Errorf("%s may be cached: %+v", uri, res.Cacheable)
			}
			return res.Contents[0].Text
		}
		if got := read(ben, leasesURI); !strings.Contains(got, "repo:web/a b") || strings.Contains(got, lease) {
			t.Errorf("leases %s", got)
		}
		if got := read(ann, mineURI); !strings.Contains(got, lease) {
			t.Errorf("own leases %s", got)
		}
		if got := read(ben, mineURI); got != `{"leases":[],"turns":[]}` {
			t.Errorf("own leases %s", got)
		}
		if got := read(ben, keyURI+"repo:web/a%20b"); !strings.Contains(got, `"purpose":"fix"`) ||
			!strings.Contains(got, `"absent":true`) {
			t.Errorf("key %s", got)
		}
		for _, uri := range []string{
			keyURI + "a//b", taskURI + "q_0123456789abcdef0123456789abcdef", taskURI + "x", "interlock://else",
		} {
			if _, err := ann.ReadResource(r.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil ||
				!strings.Contains(err.Error(), "not found") {
				t.Errorf("%s: %v", uri, err)
			}
		}
		templates, err := ann.ListResourceTemplates(r.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 2 {
			t.Errorf("templates %+v, %v", templates, err)
		}
		prompt, err := ann.GetPrompt(
			r.Context(), &sdk.GetPromptParams{Name: "leases", Arguments: map[string]string{"task": "fix\nthe login"}},
		)
		if err != nil || !strings.HasSuffix(prompt.Messages[0].Content.(*sdk.TextContent).Text, "The task: fix the login") {
			t.Errorf("prompt %+v, %v", prompt, err)
		}
	})
}
