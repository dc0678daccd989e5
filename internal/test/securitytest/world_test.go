package securitytest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// things are the names that an operation can use for a tenant's objects, by the words that
// stand for them in operation_test.go: ids, cursors, and names.
type things map[string]string

// fill puts them in.
func (w things) fill(text string) string {
	for word, thing := range w {
		text = strings.ReplaceAll(text, "{"+word+"}", thing)
	}
	return text
}

// isNamed tells names, which every tenant may use for things of its own, from ids and
// cursors, which are one tenant's.
func isNamed(word string) bool {
	switch word {
	case "queue", "pattern", "key", "file", "digest", "agent", "namespace", "webhook":
		return true
	}
	return false
}

// world returns acme something of everything, and what of it can be named.
func (s *site) world(t *testing.T) things {
	t.Helper()
	post := func(path, body string) *answer {
		t.Helper()
		return s.agent(t, acme, "POST", path, strings.ReplaceAll(body, "MARK", mark))
	}
	put := func(path, body string) {
		t.Helper()
		s.operator(t, acme, "PUT", path, strings.ReplaceAll(body, "MARK", mark)).want(200)
	}
	w := things{
		"key": mark + ":held", "queue": mark + "-queue", "pattern": mark + "-pattern", "file": mark + ".txt",
		"agent": mark + "-agent", "namespace": mark + "-namespace", "webhook": mark + "-webhook",
	}
	put("/v1/queues/"+w["queue"], `{}`)
	put("/v1/webhooks/"+w["webhook"], `{"url":"https://192.0.32.8/MARK","events":["refused"],"paused":true}`)
	put("/v1/patterns/"+w["pattern"], `{"pattern":"MARK-p:{id}"}`)
	put("/v1/patterns/"+mark+"-other", `{"pattern":"MARK-o:{id}"}`)
	put("/v1/patterns/"+mark+"-runs", `{"pattern":"org:{org}/runs","capacity":4}`)
	put("/v1/writers/"+w["pattern"], `{"queue":"MARK-queue"}`)
	w["session"] = post("/v1/sessions", `{"agent":"MARK-agent","ttl_ms":600000}`).want(200).must("session.id")
	post("/v1/sessions", `{"agent":"MARK-other","ttl_ms":600000}`).want(200)
	hold := func(key string) string {
		return post(
			"/v1/leases",
			`{"session":"`+w["session"]+`","ttl_ms":600000,"purpose":"MARK purpose","claims":[{"key":"`+key+`"}]}`,
		).want(200).must("lease.id")
	}
	w["lease"] = hold("MARK:held")
	hold("MARK:other")
	w["parked"] = hold("MARK:parked")
	post("/v1/leases/"+w["parked"]+"/park", `{"reason":"MARK reason"}`).want(200)
	post("/v1/leases/"+hold("MARK:freed")+"/park", `{"keys":"free","reason":"MARK reason"}`).want(200)
	w["ticket"] = post(
		"/v1/leases",
		`{"session":"`+w["session"]+
			`","flow":"second","on_conflict":"wait","claims":[{"key":"MARK:elsewhere"},{"key":"MARK:held"}]}`,
	).want(202).must("ticket.id")
	for i := range 2 {
		effect := post("/v1/effects", fmt.Sprintf(`{"tool":"MARK-tool","target":"MARK-%d"}`, i)).want(200)
		w["effect"], w["digest"] = effect.must("effect.id"), effect.must("effect.action")
		w["task"] = post(
			"/v1/tasks", `{"queue":"MARK-queue","kind":"MARK-kind","payload":{"MARK":1}}`,
		).want(202).must("task.id")
		post("/v1/tasks", `{"queue":"MARK-queue","approval":{"question":"MARK?"}}`).want(202)
		w["run"] = post(
			"/v1/runs", `{"org":"MARK","workflow":"MARK-flow","agent":"MARK-agent","wait_ms":0}`,
		).want(200).must("run.id")
		post(
			"/v1/commits",
			fmt.Sprintf(
				`{"note":"MARK note","as_of":"%d","session":"`+w["session"]+`","leases":["`+w["lease"]+
					`"],"writes":[{"key":"MARK:held","put":{"MARK":%d}},{"key":"MARK:doc","put":1}]}`,
				i, i,
			),
		).want(200)
	}
	post("/v1/mailbox/"+mark+"-p:1", `{"body":{"MARK":1}}`)
	if err := os.WriteFile(filepath.Join(s.files[acme], w["file"]), []byte(mark), 0o600); err != nil {
		t.Fatal(err)
	}
	for word, path := range map[string]string{
		"cursor.keys": "/v1/keys?limit=1", "cursor.state": "/v1/state?limit=1&prefix=" + mark,
		"cursor.effects": "/v1/effects?limit=1",
		"cursor.tasks":   "/v1/tasks?limit=1", "cursor.approvals": "/v1/approvals?limit=1",
		"cursor.leases": "/v1/leases?limit=1", "cursor.sessions": "/v1/sessions?limit=1",
		"cursor.parked": "/v1/parked?limit=1", "cursor.runs": "/v1/runs?limit=1",
	} {
		w[word] = url.QueryEscape(s.agent(t, acme, "GET", path, "").want(200).must("cursor"))
	}
	return w
}

// nowhere is world, with names that never existed. Everything has the length of the real thing.
func nowhere(w things) things {
	no := things{}
	for word, thing := range w {
		switch {
		case isNamed(word) && word != "digest":
			no[word] = strings.ReplaceAll(thing, mark, "nonemark")
		case strings.HasPrefix(word, "cursor."):
			no[word] = "AAAA" + thing[4:]
		default: // an id: the same kind, other digits
			head, digits, ok := strings.Cut(thing, "_")
			if !ok {
				head, digits = "", thing
			} else {
				head += "_"
			}
			no[word] = head + strings.Map(func(r rune) rune {
				if r == '0' {
					return 'f'
				}
				return '0' + (r*7+1)%10
			}, digits)
		}
	}
	return no
}
