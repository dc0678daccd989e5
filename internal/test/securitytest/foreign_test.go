package securitytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/server"
)

var foreignAttacks = []attack{
	{
		1, "A foreign Host",
		"points a name of its own at the server's address, so that a browser sends its pages' calls there, and tries " +
			"every operation with a good credential",
		"403 foreign_host, for the operations that need no credential too", foreignHost,
		[]string{"server.TestForeignHostsAndOrigins", "server.TestAnyNameWithCredentials"},
	},
	{
		2, "A foreign Origin",
		"calls every operation from a page of another site, of no site (null), of another port or of a name that only " +
			"looks alike",
		"403 foreign_host", foreignOrigin,
		[]string{"server.TestForeignPageTakesNoOffer"},
	},
	{
		3, "Sec-Fetch-Site", "calls every operation by an image, a form or a link, where browsers send no Origin",
		"403 foreign_host", foreignSite, nil,
	},
	{
		4, "Names that look alike", "writes a Host that a careless comparison takes for this machine",
		"403 foreign_host, or 400 for what is no name",
		hostsThatLookAlike,
		[]string{"server.TestHostsAreNames"},
	},
	{
		5, "Forms",
		"sends a form, or text, as a page may without asking the browser for leave, to every operation that takes JSON",
		"415, and nothing happens", forms, nil,
	},
	{
		6, "Reading that writes", "makes a browser GET, or HEAD, every readable resource",
		"the journal does not grow; following a ticket is the one exception, and takes no HEAD",
		readingThatWrites,
		[]string{"server.TestLookingChangesNothing"},
	},
	{
		7, "Another method in disguise", "asks for DELETE by X-HTTP-Method-Override, or uses TRACE, OPTIONS and CONNECT",
		"the method that was sent counts; no answer grants another site anything",
		disguisedMethods, nil,
	},
	{
		8, "Answers in a browser", "lets a browser guess the type of an answer, or keep it",
		"nosniff and no-store at every answer about a tenant, and never an Access-Control header", answersInBrowsers, nil,
	},
	{
		96, "The cookie of the dashboard",
		"has the browser of a logged-in operator call every operation, from a page of another site, from a link, and " +
			"from a form of this address; and as a program that has the cookie without the page's key, or the key alone",
		"401 or 403, and nothing happens", cookieOfTheDashboard,
		[]string{"server.TestLoginOfOtherSites", "server.TestLoginOfOtherPorts", "server.TestLoginIsSealed"},
	},
}

func refusesForeign(t *testing.T, s *site, header ...string) {
	t.Helper()
	for _, op := range s.operations(t) {
		a := op.call(op.trials()[0], sampleIDs, op.credential(s, rival))
		a.header = append(a.header, header...)
		if got := s.send(t, a); !got.is(403, "foreign_host") {
			t.Errorf("%s with %v: %d %s", op.id, header, got.status, got.raw)
		}
	}
}

func foreignHost(t *testing.T, s *site) { refusesForeign(t, s, "Host", "rebound.example") }

func foreignOrigin(t *testing.T, s *site) {
	for _, origin := range []string{"https://evil.example", "null"} {
		refusesForeign(t, s, "Origin", origin)
	}
	port := s.server.HTTP[strings.LastIndexByte(s.server.HTTP, ':'):]
	for _, origin := range []string{
		"https://127.0.0.1", "https://127.0.0.1:1", "https://" + s.server.HTTP + ".evil.example", "https://localhost" + port,
		"https://127.0.0.1.evil.example" + port, "file://", "https://evil.example#@" + s.server.HTTP,
		"ftp://" + s.server.HTTP, "", " ",
	} {
		if got := s.agent(t, rival, "GET", "/v1/keys", "", "Origin", origin); got.status != 403 {
			t.Errorf("Origin %q: %d", origin, got.status)
		}
	}
	if got := s.agent(
		t, rival, "GET", "/v1/keys", "", "Origin", "https://"+s.server.HTTP, "Origin", "https://evil.example",
	); got.status != 403 {
		t.Errorf("two Origins: %d", got.status)
	}
	s.agent(t, rival, "GET", "/v1/keys", "", "Origin", "https://"+s.server.HTTP).want(200)
}

func foreignSite(t *testing.T, s *site) {
	refusesForeign(t, s, "Sec-Fetch-Site", "cross-site")
	refusesForeign(t, s, "Sec-Fetch-Site", "same-site") // another port of this machine
	s.agent(t, rival, "GET", "/v1/keys", "", "Sec-Fetch-Site", "same-origin").want(200)
}

func hostsThatLookAlike(t *testing.T, s *site) {
	for _, host := range []string{
		"localhost.evil.example", "127.0.0.1.nip.io", "127.0.0.1.evil.example:7420", "evil.example:127",
		"localhost:80.evil.example", "127.0.0.1@evil.example",
		"evil.example/127.0.0.1", "localhost,evil.example", "localhost evil.example", "[::1].evil.example",
		"::1.evil.example", "0x7f.evil", "10.0.0.1", "0.0.0.0", "",
		"localhost\tx", "127.1.evil", "2130706433.evil", "ⓛocalhost.example",
	} {
		got := s.raw(
			t,
			fmt.Sprintf(
				"GET /v1/keys HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", host,
				s.secrets[rival],
			),
		)
		if got == nil || got.status != 403 && got.status != 400 {
			t.Errorf("Host %q: %+v", host, got)
		}
	}
	for _, pair := range []string{
		"Host: localhost\r\nHost: evil.example", "host: evil.example\r\nHost: localhost", "Accept: */*",
	} {
		if got := s.raw(t, "GET /healthz HTTP/1.1\r\n"+pair+"\r\nConnection: close\r\n\r\n"); got == nil || got.status != 400 {
			t.Errorf("%q: %+v", pair, got)
		}
	}
	// Headers of a proxy about the host are ignored here, and an absolute address is the Host.
	if got := s.raw(
		t, "GET https://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	); !got.is(403, "foreign_host") {
		t.Errorf("an absolute address: %+v", got)
	}
	s.send(
		t,
		ask{
			method: "GET", path: "/healthz",
			header: []string{"X-Forwarded-Host", "evil.example", "Forwarded", "host=evil.example"},
		},
	).want(200)
}

func cookieOfTheDashboard(t *testing.T, s *site) {
	login := s.send(t, ask{
		method: "POST", path: server.SessionPath, body: `{"secret":"` + s.operators[rival] + `"}`,
		header: []string{"Sec-Fetch-Site", "same-origin", "Interlock-Dashboard", "1"},
	}).want(200)
	cookie, _, _ := strings.Cut(login.header.Get("Set-Cookie"), ";")
	own := []string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Interlock-Dashboard", login.must("key")}
	s.send(t, ask{method: "GET", path: "/v1/keys", header: own}).want(200)
	before := s.index(t)
	for _, op := range s.operations(t) {
		for _, header := range [][]string{
			{"Cookie", cookie},
			{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"},
			{"Cookie", cookie, "Sec-Fetch-Site", "same-site"},
			{"Cookie", cookie, "Sec-Fetch-Site", "none"},
			{"Cookie", cookie, "Origin", "https://evil.example"},
			{"Cookie", cookie, "Sec-Fetch-Site", "same-origin"},
			{"Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Interlock-Dashboard", "1"},
			{"Sec-Fetch-Site", "same-origin", "Interlock-Dashboard", login.must("key")},
		} {
			if op.open {
				continue
			}
			a := op.call(op.trials()[0], sampleIDs, "")
			a.header = append(a.header, header...)
			if got := s.send(t, a); got.status != 401 && got.status != 403 {
				t.Errorf("%s with %v: %d %s", op.id, header[2:], got.status, got.raw)
			}
		}
	}
	s.unchanged(t, before)
}

func forms(t *testing.T, s *site) {
	before := s.index(t)
	tried := 0
	for _, op := range s.operations(t) {
		if !op.hasBody || op.kind != "" {
			continue
		}
		tried++
		a := op.call(op.trials()[0], sampleIDs, op.credential(s, rival))
		a.body = `{"a":1}`
		for _, kind := range []string{
			"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
			"application/json; charset=utf-16", "application/jsonp", "text/json", "", "application/json, text/plain",
		} {
			a.header = []string{"Content-Type", kind}
			if got := s.send(t, a); got.status != 415 {
				t.Errorf("%s as %q: %d %s", op.id, kind, got.status, got.raw)
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d operations take JSON", tried)
	}
	s.unchanged(t, before)
}

// sampleIDs have the form of ids.
var sampleIDs = things{
	"lease": "l_00000000000000000000000000000001", "parked": "l_00000000000000000000000000000001",
	"run":    "l_00000000000000000000000000000001",
	"ticket": "t_00000000000000000000000000000001", "session": "s_00000000000000000000000000000001",
	"task":   "q_00000000000000000000000000000001",
	"effect": "e_00000000000000000000000000000001", "digest": strings.Repeat("0", 63) + "1", "queue": "sample",
	"pattern": "sample", "key": "sample", "file": "sample", "agent": "sample", "namespace": "sample",
}

// index is where the journal ends.
func (s *site) index(t *testing.T) string {
	t.Helper()
	return s.agent(t, rival, "GET", "/v1/keys", "").want(200).must("at.index")
}

// unchanged fails the test if entries of the journal behind an index have another reason than the passing of time:
// leases and sessions of the cases before may end at any moment.
func (s *site) unchanged(t *testing.T, before string) {
	t.Helper()
	after := s.index(t)
	if after == before {
		return
	}
	from, err := strconv.ParseUint(before, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	to, err := strconv.ParseUint(after, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	text := s.agent(t, rival, "GET", fmt.Sprintf("/v1/events?from=%d", from+1), "").want(200).raw
	ends := map[uint64]bool{} // by entry: whether all its events are ends by time
	for line := range strings.Lines(text) {
		var e struct {
			Index  uint64 `json:",string"`
			Reason string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		byTime := slices.Contains([]string{"ttl", "max_hold", "session_expired", "lapsed", "wait_limit"}, e.Reason)
		known, seen := ends[e.Index]
		ends[e.Index] = byTime && (known || !seen)
	}
	for i := from + 1; i <= to; i++ {
		if !ends[i] {
			t.Errorf("the journal went from %s to %s, and entry %d is no end by time:\n%s", before, after, i, text)
			return
		}
	}
}

func readingThatWrites(t *testing.T, s *site) {
	before := s.index(t)
	reads, exceptions := 0, 0
	for _, op := range s.operations(t) {
		if op.method != "GET" {
			continue
		}
		reads++
		for _, tr := range op.trials() {
			s.send(t, op.call(tr, sampleIDs, op.credential(s, rival)))
			a := op.call(tr, sampleIDs, op.credential(s, rival))
			a.method = "HEAD"
			if got := s.send(t, a); op.wakes || op.endless || op.id == "listEvents" {
				if got.status != 405 {
					t.Errorf("HEAD of %s: %d", op.id, got.status)
				}
			}
		}
		if op.wakes {
			exceptions++
		}
	}
	s.unchanged(t, before)
	if reads < 25 || exceptions != 1 {
		t.Errorf("%d operations read, %d may write", reads, exceptions)
	}
}

func disguisedMethods(t *testing.T, s *site) {
	s.agent(t, rival, "POST", "/v1/commits", `{"writes":[{"key":"g:disguised","put":1}]}`).want(200)
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"} {
		s.agent(t, rival, "GET", "/v1/state/g:disguised", "", name, "DELETE").want(200)
	}
	s.agent(t, rival, "GET", "/v1/state/g:disguised?_method=DELETE", "").want(400, "invalid_request")
	for _, method := range []string{"TRACE", "OPTIONS", "get", "BREW", "PROPFIND", "DELETE "} {
		got := s.raw(
			t,
			method+" /v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+s.secrets[rival]+"\r\nOrigin: https://"+
				s.server.HTTP+"\r\nConnection: close\r\n\r\n",
		)
		if got == nil || got.status < 400 || strings.Contains(got.raw, s.secrets[rival]) {
			t.Errorf("%s: %+v", method, got)
		}
	}
	if got := s.raw(
		t, "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nConnection: close\r\n\r\n",
	); got == nil ||
		got.status != 403 {
		t.Errorf("CONNECT: %+v", got)
	}
	s.agent(t, rival, "GET", "/v1/state/g:disguised", "").want(200)
}

func answersInBrowsers(t *testing.T, s *site) {
	for _, op := range s.operations(t) {
		for _, as := range []string{op.credential(s, rival), ""} {
			a := op.call(op.trials()[0], sampleIDs, as)
			a.header = append(a.header, "Origin", "https://"+s.server.HTTP)
			got := s.send(t, a)
			for name := range got.header {
				if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" || name == "Server" {
					t.Errorf("%s has the header %s", op.id, name)
				}
			}
			if got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s (%d): the type may be guessed", op.id, got.status)
			}
			if !op.process && got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s (%d): Cache-Control is %q", op.id, got.status, got.header.Get("Cache-Control"))
			}
		}
	}
}
