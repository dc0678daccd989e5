//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// shownPage is an answer of the page behind a link.
type shownPage struct {
	status int
	header http.Header
	text   string
}

// A person answers a question from where its message arrives: the link shows all that is needed to
// decide, answers once, and is of no use to another site, to a guesser, or afterwards.
func TestApproveLink(t *testing.T) {
	receiverURL, deliveries := receiver(t)
	r := newRig(t, "--webhook-allow", "127.0.0.0/8", "--public-url", "https://interlock.example")
	var set struct{ Secret string }
	out := r.must(
		"webhook", "set", "desk", receiverURL, "--events", "approval_requested", "--approve-links", "-o", "json",
	)
	if err := json.Unmarshal([]byte(out), &set); err != nil {
		t.Fatal(err)
	}
	r.must("queue", "set", "refunds")
	const hostile = `Refund <script>alert(1)</script> to account:7?`
	ask := func(limit ...string) (task, link string) {
		t.Helper()
		out := r.must(append([]string{
			"task", "create", "refunds", `{"cents":120000}`, "--key", "account:7", "--agent", "support-2",
			"--question", hostile,
		}, limit...)...)
		task = out[strings.Index(out, "q_"):][:len("q_")+32]
		d, _ := nextDelivery(t, deliveries, set.Secret)
		d.answer <- http.StatusNoContent
		var message struct {
			Data struct {
				Question struct{ Question, Agent, Deadline, AtDeadline string }
				Links    struct{ Answer string }
				Commands []string
			}
		}
		if err := json.Unmarshal(d.body, &message); err != nil {
			t.Fatal(err)
		}
		path, found := strings.CutPrefix(message.Data.Links.Answer, "https://interlock.example/v1/approve/")
		q, commands := &message.Data.Question, strings.Join(message.Data.Commands, "\n")
		if !found || q.Question != hostile || q.Agent != "support-2" || (q.Deadline != "") != (limit != nil) ||
			!strings.Contains(commands, "approval approve "+task) {
			t.Fatalf("the message is %s", d.body)
		}
		return task, "http://" + r.server.HTTP + "/v1/approve/" + path
	}
	do := func(method, link string, form url.Values, headers ...string) shownPage {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, link, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodPost {
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for i := 0; i < len(headers); i += 2 {
			q.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return shownPage{res.StatusCode, res.Header, string(text)}
	}
	task, link := ask("--question-for", "8h")

	// Chats open links by themselves: looking changes nothing.
	for range 2 {
		shown := do(http.MethodGet, link, nil)
		if shown.status != http.StatusOK || strings.Contains(shown.text, "<script") {
			t.Fatalf("%d %s", shown.status, shown.text)
		}
		for _, part := range []string{
			"Refund &lt;script&gt;", "support-2", "&#34;cents&#34;: 120000", "account:7 (exclusive)", task, "queue refunds",
			"denied at 20", `value="approved"`, `value="denied"`,
		} {
			if !strings.Contains(shown.text, part) {
				t.Errorf("the page lacks %q: %s", part, shown.text)
			}
		}
		policy := shown.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			shown.header.Get("Cache-Control") != "no-store" || shown.header.Get("Referrer-Policy") == "" {
			t.Errorf("headers %v", shown.header)
		}
	}

	yes := url.Values{"verdict": {"approved"}, "by": {"ada"}, "reason": {"seen the parcel"}}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		if foreign := do(http.MethodPost, link, yes, headers...); foreign.status != http.StatusForbidden {
			t.Errorf("%v: %d %s", headers, foreign.status, foreign.text)
		}
	}
	for i, wrong := range []string{link[:len(link)-6] + "AAAAAA", link + "A", link[:len(link)-20]} {
		if forged := do(http.MethodPost, wrong, yes); forged.status != http.StatusGone {
			t.Errorf("forged token %d: %d %s", i, forged.status, forged.text)
		}
	}
	if neither := do(http.MethodPost, link, url.Values{"verdict": {"maybe"}}); neither.status != http.StatusBadRequest {
		t.Errorf("neither yes nor no: %d %s", neither.status, neither.text)
	}

	answered := do(http.MethodPost, link, yes)
	if answered.status != http.StatusOK || !strings.Contains(answered.text, "It was approved by") ||
		!strings.Contains(answered.text, "ada") || !strings.Contains(answered.text, "seen the parcel") {
		t.Errorf("%d %s", answered.status, answered.text)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		again := do(method, link, url.Values{"verdict": {"denied"}})
		if again.status != http.StatusGone || !strings.Contains(again.text, "answered") ||
			strings.Contains(again.text, "<form") {
			t.Errorf("%s again: %d %s", method, again.status, again.text)
		}
	}
	if out := r.must("log", "--event", "approval_decided"); !strings.Contains(out, "webhook:desk") ||
		!strings.Contains(out, "approved") {
		t.Errorf("the log shows\n%s", out)
	}

	// A new secret ends the links that the former one has signed.
	task, link = ask()
	if shown := do(http.MethodGet, link, nil); !strings.Contains(shown.text, "the task waits") {
		t.Errorf("the page does not show that the question has no time limit: %s", shown.text)
	}
	r.must("webhook", "rotate", "desk")
	if old := do(http.MethodPost, link, yes); old.status != http.StatusGone {
		t.Errorf("after the rotation: %d %s", old.status, old.text)
	}
	if out := r.must("approval", "get", task); strings.Contains(out, "approved") {
		t.Errorf("the question is answered:\n%s", out)
	}
}
