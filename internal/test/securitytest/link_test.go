package securitytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/server"
)

// publicURL is where links to the server point.
const publicURL = "https://interlock.example"

// questionLink is the link in a message about a task's question.
type questionLink struct{ task, path string }

// desk is a receiver of messages, as one that an attacker runs.
type desk struct {
	url   string
	links chan questionLink
}

func newDesk(t *testing.T) *desk {
	d := &desk{links: make(chan questionLink, 256)}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Data struct {
				Links struct{ Answer, API string }
			}
		}
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &m) == nil && m.Data.Links.Answer != "" {
			_, task, _ := strings.Cut(m.Data.Links.API, "/v1/approvals/")
			d.links <- questionLink{task, strings.TrimPrefix(m.Data.Links.Answer, publicURL)}
		}
	}))
	t.Cleanup(srv.Close)
	d.url = srv.URL
	return d
}

// link waits for the link to the question about a task.
func (d *desk) link(t *testing.T, task string) string {
	t.Helper()
	for {
		select {
		case l := <-d.links:
			if l.task == task {
				return l.path
			}
		case <-t.Context().Done():
			t.Fatalf("no message about %s", task)
		}
	}
}

// enrol adds credentials of acme to the server's file, and returns their secrets.
func (s *site) enrol(t *testing.T, list ...interlock.Principal) (secrets []string) {
	t.Helper()
	lines, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		secret, line, err := server.NewCredential(p, acme)
		if err != nil {
			t.Fatal(err)
		}
		lines, secrets = append(lines, line+"\n"...), append(secrets, secret)
	}
	s.reload(t, string(lines))
	return secrets
}

// aim sets a webhook with links of approval.
func (s *site) aim(t *testing.T, secret, name string, d *desk) {
	t.Helper()
	s.send(t, ask{
		method: "PUT", path: "/v1/webhooks/" + name, as: secret,
		body: `{"url":"` + d.url + `","events":["approval_requested"],"approve_links":true}`,
	}).want(200)
}

// question submits a task that asks a person.
func (s *site) question(t *testing.T, secret, queue string) (task string) {
	t.Helper()
	return s.send(t, ask{
		method: "POST", path: "/v1/tasks", as: secret,
		body: `{"queue":"` + queue + `","approval":{"question":"pay?"}}`,
	}).want(202).must("task.id")
}

// approveBy answers a question by a link, as any program that has it.
func (s *site) approveBy(t *testing.T, link string) *answer {
	t.Helper()
	return s.send(t, ask{
		method: "POST", path: link, body: "by=CFO&verdict=approved",
		header: []string{"Content-Type", "application/x-www-form-urlencoded"},
	})
}

// verdict reads the state of a question.
func (s *site) verdict(t *testing.T, task string) string {
	t.Helper()
	return s.agent(t, acme, "GET", "/v1/tasks/"+task, "").want(200).str("task.approval.verdict")
}

// TestRightsOfLinks tries each role beside that of an operator: a link of a webhook answers exactly what the
// principal may answer that set it.
func TestRightsOfLinks(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, "--webhook-allow", "127.0.0.1", "--public-url", publicURL)
	s.operator(t, acme, "PUT", "/v1/queues/pay", `{}`).want(200)
	var setters []interlock.Principal
	for _, role := range strings.Split(interlock.AllRoles.String(), ",") {
		p := interlock.Principal{Name: "operator-" + role, Queues: []string{"pay"}}
		p.Roles, _ = interlock.ParseRole(role)
		if p.Roles |= interlock.RoleOperator; p.Roles&interlock.RoleWorker == 0 {
			p.Queues = nil
		}
		setters = append(setters, p)
	}
	setters = append(setters, interlock.Principal{
		Name: "everything", Roles: interlock.AllRoles &^ interlock.RoleMetrics, Queues: []string{"*"},
	})
	secrets := s.enrol(t, setters...)
	for i, p := range setters {
		askers := map[string]string{"another": s.secrets[acme]}
		if p.Roles&(interlock.RoleAgent|interlock.RoleMerger) != 0 {
			askers["itself"] = secrets[i]
		}
		s.aim(t, secrets[i], "mine", d)
		for who, asker := range askers {
			task := s.question(t, asker, "pay")
			link := d.link(t, task)
			direct := s.send(t, ask{
				method: "POST", path: "/v1/approvals/" + s.question(t, asker, "pay"), as: secrets[i],
				body: `{"verdict":"approved"}`,
			})
			byLink := s.approveBy(t, link)
			if may := direct.status == 200; may != (s.verdict(t, task) == "approved") || may != (byLink.status == 200) {
				t.Errorf("%s answers %s itself with %d, and by its link with %d", p.Name, who, direct.status, byLink.status)
			}
			if byLink.status != 200 {
				shown := s.send(t, ask{method: "GET", path: link})
				if p.Has(interlock.RoleApprover) == strings.Contains(shown.raw, "Log in to answer") {
					t.Errorf("the page of %s for %s: %s", p.Name, who, shown.raw)
				}
			}
		}
		s.send(t, ask{method: "DELETE", path: "/v1/webhooks/mine", as: secrets[i]}).want(200)
	}
}

// TestThingsOfPrincipals has principals join their things: webhooks set by one and by several, rotated, deleted and
// set anew, and credentials that lose their role.
func TestThingsOfPrincipals(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, "--webhook-allow", "127.0.0.1", "--public-url", publicURL)
	s.operator(t, acme, "PUT", "/v1/queues/pay", `{}`).want(200)
	s.operator(t, acme, "PUT", "/v1/queues/two", `{"min_approvals":2}`).want(200)
	before, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	all := interlock.RoleAgent | interlock.RoleOperator
	secrets := s.enrol(
		t,
		interlock.Principal{Name: "mallory", Roles: all},
		interlock.Principal{Name: "lead", Roles: all | interlock.RoleApprover},
	)
	mallory, lead := secrets[0], secrets[1]
	other := s.secrets[acme]
	isAnswered := func(what, task, link string, want bool) {
		t.Helper()
		if a := s.approveBy(t, link); want != (a.status == 200) || want != (s.verdict(t, task) == "approved") {
			t.Errorf("%s: %d, and the question is %q", what, a.status, s.verdict(t, task))
		}
	}

	s.aim(t, mallory, "a", d)
	s.aim(t, lead, "a", d)
	task := s.question(t, mallory, "pay")
	isAnswered("a URL that the asker chose and an approver confirmed", task, d.link(t, task), false)
	task = s.question(t, other, "pay")
	isAnswered("the same receiver for another asker", task, d.link(t, task), true)

	for _, way := range []string{"rotate", "change", "replace"} {
		task = s.question(t, other, "pay")
		old := d.link(t, task)
		switch way {
		case "rotate":
			s.send(t, ask{method: "POST", path: "/v1/webhooks/a/rotate", as: mallory}).want(200)
		case "change":
			s.aim(t, mallory, "a", &desk{url: d.url + "/other"})
		case "replace":
			s.send(t, ask{method: "DELETE", path: "/v1/webhooks/a", as: mallory}).want(200)
			s.aim(t, mallory, "a", d)
		}
		isAnswered("a link from before "+way, task, old, false)
		task = s.question(t, other, "pay")
		isAnswered("a link from after "+way, task, d.link(t, task), way == "rotate")
		if way != "replace" {
			s.aim(t, lead, "a", d)
		}
	}

	for _, name := range []string{"b", "c"} {
		s.aim(t, lead, name, d)
	}
	s.send(t, ask{method: "DELETE", path: "/v1/webhooks/a", as: mallory}).want(200)
	task = s.question(t, other, "two")
	for i, link := range []string{d.link(t, task), d.link(t, task)} {
		if a := s.approveBy(t, link); (a.status == 200) != (i == 0) {
			t.Errorf("approval %d by things of one principal: %d %s", i, a.status, a.raw)
		}
	}
	s.send(t, ask{
		method: "POST", path: "/v1/approvals/" + task, body: `{"verdict":"approved"}`, as: lead,
	}).want(403, "forbidden")
	if got := s.verdict(t, task); got != "" {
		t.Errorf("two things of one principal and itself: %q", got)
	}

	// A principal that may not answer any more has nothing that may.
	task = s.question(t, other, "pay")
	link := d.link(t, task)
	s.reload(t, string(before)+"# "+fmt.Sprint(len(secrets))+" are gone\n")
	busy.Wait(t, "the credential is gone", func() bool {
		return s.send(t, ask{method: "GET", path: "/v1/keys", as: lead}).status == http.StatusUnauthorized
	})
	isAnswered("a link of a principal whose credential is gone", task, link, false)
}
