package securitytest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

var nameAttacks = []attack{
	{
		29, "Two spellings of one entity",
		"locks the same thing under a second spelling: NFD, zero-width and bidirectional characters, dots, double " +
			"slashes, spaces, variation selectors, odd UTF-8",
		"400 invalid_key, over HTTP, in the path, on the stream and by the command: no second lock", spellings, nil,
	},
	{
		30, "Spellings of the path",
		"writes %2e, %2f, %252f, // or .. in the address, so that a proxy in front and the server see different things",
		"the path is taken as it was sent: another key than meant, or a refusal, never another operation", pathSpellings,
		[]string{"server.TestUndocumentedPathsAreUnknown"},
	},
	{
		31, "Aliases of a pattern", "locks an entity by the alias of its pattern while another agent holds it by its name",
		"both are one key: 409 held", aliases, nil,
	},
	{
		32, "Names of queues, patterns, agents and flows", "uses NUL, line breaks, ANSI, traversal or 129 bytes as a name",
		"400, or the name comes back without what cannot be seen, and names nothing else",
		oddNames, nil,
	},
	{
		33, "Names that look like options",
		"names a key, an agent or a file --help, -rf or --upload-pack=x, and passes it to the command",
		"it is a name: behind -- nothing is taken for an option", optionNames, nil,
	},
}

// badSpellings are texts that are not keys. %s is for JSON.
var badSpellings = []string{
	"", "/", "a/", "/a", "a//b", "a/./b", "a/../b", "..", ".", "a ", " a", "a/ b", "cafe\u0301", "a\u200bb", "a\u200db",
	"a\u202eb", "a\u2066b", "a\ufeffb", "a\u00adb",
	"a\u3164b", "a\u2800b", "a\u00a0b", "a\u2003b", "a\ufe0fb", "\u212b", "a\x00b", "a\nb", "a\rb", "a\tb", "a\x1b[2Jb",
	"a\x7fb", "a\u0085b", "a\u2028b",
	"a\U000e0041b", strings.Repeat("a", 513), strings.Repeat("a/", 16) + "b",
}

func spellings(t *testing.T, s *site) {
	before := s.index(t)
	l := s.agentStream(t, rival)
	l.send(openOp(1, "speller"))
	l.reply(1)
	for i, key := range badSpellings {
		if got := s.agent(
			t, rival, "POST", "/v1/leases", fmt.Sprintf(`{"claims":[{"key":%s}]}`, quoteJSON(key)),
		); !got.is(400, "invalid_key") {
			t.Errorf("%q in a claim: %d %s", key, got.status, got.raw)
		}
		if got := s.agent(
			t, rival, "POST", "/v1/commits", fmt.Sprintf(`{"writes":[{"key":%s,"put":1}]}`, quoteJSON(key)),
		); got.status != 400 {
			t.Errorf("%q in a commit: %d %s", key, got.status, got.raw)
		}
		if path := (&url.URL{Path: "/v1/state/" + key}).EscapedPath(); key != "" && key != "." && key != ".." {
			if got := s.agent(t, rival, "PUT", path, `1`, "If-None-Match", "*"); got.status != 400 {
				t.Errorf("%q in the path: %d %s", key, got.status, got.raw)
			}
		}
		seq := uint64(i + 2)
		l.send(acquireOp(1, seq, interlock.LeaseRequest{Claims: []interlock.Claim{{Key: interlock.Key(key)}}}))
		if got := l.reply(seq); got.Code != "invalid_key" {
			t.Errorf("%q on the stream: %v %s %s", key, got.Outcome, got.Code, got.Message)
		}
	}
	// UTF-8 that is none cannot be a JSON text at all, nor two halves of a pair.
	for _, text := range []string{"\xff", "a\xc0\xafb", "\xed\xa0\x80", `\ud800`, `\ud800\ud800`} {
		if got := s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"`+text+`"}]}`); got.status != 400 {
			t.Errorf("%q: %d %s", text, got.status, got.raw)
		}
	}
	if after := s.index(t); len(after) != len(before) && after != before {
		t.Errorf("the journal went from %s to %s", before, after)
	}
	for _, key := range []string{"a/../b", "cafe\u0301", "a\u200bb", "a//b"} {
		if out, code := s.command(t, rival, "lock", key); code != 2 && code != 1 || !strings.Contains(out, "key") {
			t.Errorf("interlock lock %q: exit code %d, %s", key, code, out)
		}
	}
}

func pathSpellings(t *testing.T, s *site) {
	s.agent(t, rival, "PUT", "/v1/state/p/q", `"one"`, "If-None-Match", "*").want(200)
	call := func(method, path string) *answer {
		return s.raw(
			t,
			method+" "+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+s.secrets[rival]+
				"\r\nIf-Match: *\r\nConnection: close\r\n\r\n",
		)
	}
	for path, status := range map[string]int{
		"/v1/state/p/q": 200, "/v1/state/p%2Fq": 200, "/v1/state/%70/q": 200, // one key in its spellings
		"/v1/state/p%252Fq": 404, "/v1/state/p/../p/q": 400, "/v1/state/p/%2e%2e/p/q": 400, "/v1/state//p/q": 400,
		"/v1/state/p//q": 400, "/v1/state/p/q/": 400, "/v1/state/./p/q": 400,
		"/v1//state/p/q": 404, "//v1/state/p/q": 404, "/v1%2Fstate/p/q": 404, "/v1/./state/p/q": 404,
		"/healthz/../v1/state/p/q": 404, "/V1/state/p/q": 404,
		"/v1/state;x/p/q": 404, "/v1/state/p/q;x": 404, "/v1/state/p/q%00": 400, "/v1/state/p/q%0d%0aX:%20y": 400,
		"/v1/state/p/%zz": 400, "/v1/state/p\\q": 404, "/openapi.json/../v1/keys": 404,
	} {
		if got := call("GET", path); got == nil || got.status != status {
			t.Errorf("GET %s: %+v, want %d", path, got, status)
		}
	}
	for _, path := range []string{"/v1/state/p/../p/q", "/v1/state/p//q", "/v1%2Fstate/p/q", "/v1/state/p%252Fq"} {
		if got := call("DELETE", path); got != nil && got.status < 400 {
			t.Errorf("DELETE %s: %+v", path, got)
		}
	}
	s.agent(t, rival, "GET", "/v1/state/p/q", "").want(200)
}

func aliases(t *testing.T, s *site) {
	s.worlds(t)
	s.operator(
		t, rival, "PUT", "/v1/patterns/aliased", `{"pattern":"aliased:{id:int}","aliases":["alias/{id:int}"]}`,
	).want(200)
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"aliased:12"}]}`).want(200)
	for _, key := range []string{"aliased:12", "alias/12", "aliased:012", "alias/0012"} {
		got := s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"`+key+`"}]}`)
		if got.status == 200 {
			t.Errorf("%s is held by another spelling, and was given: %s", key, got.raw)
		}
	}
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"alias/13"}]}`).want(200)
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"aliased:13"}]}`).want(409, "held")
}

func oddNames(t *testing.T, s *site) {
	for _, name := range []string{"a\x00b", "a\nb", "\x1b[2J", "a\u202eb", "a\u200bb", strings.Repeat("n", 129)} {
		q := quoteJSON(name)
		for _, path := range []string{"/v1/queues/", "/v1/patterns/", "/v1/writers/"} {
			body := map[string]string{
				"/v1/queues/": `{}`, "/v1/patterns/": `{"pattern":"odd:{id}"}`, "/v1/writers/": `{"queue":"q"}`,
			}[path]
			if got := s.operator(t, rival, "PUT", path+url.PathEscape(name), body); got.status < 400 || got.status >= 500 {
				t.Errorf("PUT %s%q: %d %s", path, name, got.status, got.raw)
			}
		}
		if got := s.agent(t, rival, "POST", "/v1/tasks", `{"queue":`+q+`}`); got.status < 400 || got.status >= 500 {
			t.Errorf("queue %q: %d %s", name, got.status, got.raw)
		}
		for _, body := range []string{
			`{"agent":` + q + `,"claims":[{"key":"odd:1"}]}`, `{"flow":` + q + `,"claims":[{"key":"odd:1"}]}`,
		} {
			got := s.agent(t, rival, "POST", "/v1/leases", body)
			if got.status == 200 {
				unharmful(t, "a lease of "+name, got.raw)
				s.agent(t, rival, "POST", "/v1/leases/"+got.must("lease.id")+"/release", "{}").want(200)
			} else if got.status != 400 {
				t.Errorf("%s: %d %s", body, got.status, got.raw)
			}
		}
	}
	for _, name := range []string{"..", ".", "a/b", "../acme", "acme%2fx"} {
		if got := s.operator(t, rival, "PUT", "/v1/queues/"+url.PathEscape(name), `{}`); got.status == 200 {
			if s.agent(t, acme, "GET", "/v1/queues/"+url.PathEscape(name), "").status != 404 {
				t.Errorf("queue %q is another tenant's too", name)
			}
			s.operator(t, rival, "DELETE", "/v1/queues/"+url.PathEscape(name), "").want(200)
		}
	}
}

func optionNames(t *testing.T, s *site) {
	for _, key := range []string{"--help", "-rf", "--upload-pack=x", "--url=x", "-o", "--credential-file=/etc/passwd"} {
		if out, code := s.command(t, rival, "lock", "--wait=0s", "--purpose=x", "--", key); code != 0 {
			t.Errorf("lock -- %s: exit code %d, %s", key, code, out)
		}
		if got := s.agent(t, rival, "GET", "/v1/keys/"+url.PathEscape(key), ""); got.str("state") != "held" {
			t.Errorf("%s: %s", key, got.raw)
		}
		out, code := s.command(t, rival, "key", "get", "--", key)
		if code != 0 || !strings.Contains(out, key) || strings.Contains(out, "Usage:") {
			t.Errorf("key get -- %s: exit code %d, %s", key, code, out)
		}
	}
}
