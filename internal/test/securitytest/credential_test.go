package securitytest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/server"
)

var credentialAttacks = []attack{
	{
		9, "No credential", "calls every operation without one",
		"401 unauthenticated, and the same words for each; four operations are open, which show nothing of any tenant",
		noCredential, nil,
	},
	{
		10, "Invalid credentials",
		"sends a good one shortened, lengthened, in another case, with spaces or NUL, doubled, as Basic, as a cookie or " +
			"in the address, or a very long one",
		"401, whatever is wrong with it", badCredentials,
		[]string{"server.TestCredentialFileMistakes"},
	},
	{
		11, "Another namespace by header",
		"names another tenant's namespace beside a good credential, in any spelling, for every operation",
		"403 forbidden, or 400 for what is no namespace", otherNamespace,
		[]string{"server.TestCredentialDecidesNamespace"},
	},
	{
		12, "The session stream", "opens a stream with no credential, a wrong one, two, or for another namespace",
		"the stream ends with unauthenticated or forbidden before anything is carried out", streamCredentials, nil,
	},
	{
		13, "Agents that act as operators",
		"changes patterns, settings, queues, writers or the keys that sign fences with an agent's credential, over HTTP " +
			"and the stream",
		"403 forbidden, and nothing is changed", notOperators,
		[]string{"server.TestOperatorsOnTheStream"},
	},
	{
		14, "A removed credential",
		"continues a stream, and a reader of events, that it opened before the operator removed its line",
		"new calls get 401 at once, and what was open ends", revoked,
		[]string{"server.TestCredentialReload"},
	},
	{
		15, "Plain text and old TLS", "speaks plain HTTP, or TLS 1.1, to a server with a certificate",
		"no answer about anything: the connection is refused", oldTLS,
		[]string{"server.TestHTTPOverTLS"},
	},
	{
		16, "A public address without credentials", "hopes that the operator forgot them",
		"the server does not start, unless --insecure is set",
		publicAddress,
		[]string{"server.TestCheckListen"},
	},
	{
		81, "The single writer of a key",
		"pulls from the queue that is the writer of a key with an agent's credential, a worker's of another queue and a " +
			"worker's that the queue does not list, and writes past the writer",
		"403 forbidden or writer_only, and the key keeps its value", singleWriter,
		[]string{"server.TestOnlyTheWriterWrites"},
	},
	{
		77, "The session stream without gRPC",
		"says hello on the session port with no credential, a wrong one, or for another namespace",
		"the link ends with unauthenticated or forbidden before anything is carried out", framedStrangers, nil,
	},
	{
		17, "The credentials file", "reads the file, a backup or the journal's directory",
		"the file has hashes only, and only the server's user may read its files", atRest,
		[]string{"server.TestCredentialIsHashedAtRest"},
	},
}

func singleWriter(t *testing.T, s *site) {
	lines, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{}
	added := string(lines)
	for name, p := range map[string]interlock.Principal{
		"bank-agent":   {Roles: interlock.RoleAgent},
		"mail-worker":  {Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"mail"}},
		"other-worker": {Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"*"}},
		"bank-worker":  {Roles: interlock.RoleWorker, Queues: []string{"bank"}},
	} {
		p.Name = name
		secret, line, err := server.NewCredential(p, rival)
		if err != nil {
			t.Fatal(err)
		}
		secrets[name], added = secret, added+line+"\n"
	}
	s.reload(t, added)
	defer s.reload(t, string(lines))
	as := func(name, method, path, body string) *answer {
		return s.send(t, ask{method: method, path: path, body: body, as: secrets[name]})
	}
	s.operator(t, rival, "PUT", "/v1/queues/bank", `{"pull":["bank-worker"]}`).want(200)
	s.operator(t, rival, "PUT", "/v1/writers/money", `{"queue":"bank","pattern":"money:{id}"}`).want(200)
	as("bank-agent", "POST", "/v1/mailbox/money:1", `{"kind":"credit","body":{"cents":100}}`).want(202)
	for _, name := range []string{"bank-agent", "mail-worker", "other-worker"} {
		as(name, "POST", "/v1/queues/bank/pull", `{}`).want(403, "forbidden")
		if got := as(name, "PUT", "/v1/state/money:1", `1000000`); got.status != 403 {
			t.Errorf("%s writes past the writer: %s", name, got.raw)
		}
	}
	lease := as("bank-worker", "POST", "/v1/queues/bank/pull", `{}`).want(200).must("tasks.0.lease.id")
	for _, name := range []string{"bank-agent", "mail-worker", "other-worker"} {
		if got := as(
			name, "POST", "/v1/leases/"+lease+"/ack", `{"writes":[{"key":"money:1","put":1000000}]}`,
		); got.status != 403 {
			t.Errorf("%s acknowledges another worker's message: %s", name, got.raw)
		}
	}
	as("bank-worker", "POST", "/v1/leases/"+lease+"/ack", `{"writes":[{"key":"money:1","put":100}]}`).want(200)
	if got := s.agent(t, rival, "GET", "/v1/state/money:1", "").want(200); strings.TrimSpace(got.raw) != "100" {
		t.Errorf("the balance is %s", got.raw)
	}
}

func noCredential(t *testing.T, s *site) {
	open, words := 0, ""
	for _, op := range s.operations(t) {
		got := s.send(t, op.call(op.trials()[0], sampleIDs, ""))
		if op.open {
			open++
			got.want(200)
			if strings.Contains(got.raw, mark) || strings.Contains(got.raw, acme) && op.id != "getOpenAPI" {
				t.Errorf("%s shows a tenant: %s", op.id, got.raw)
			}
			continue
		}
		if !got.is(401, "unauthenticated") {
			t.Errorf("%s: %d %s", op.id, got.status, got.raw)
			continue
		}
		if now := volatile.ReplaceAllString(got.raw, "0"); words == "" {
			words = now
		} else if now != words {
			t.Errorf("%s: %s, elsewhere %s", op.id, now, words)
		}
	}
	if open != 6 {
		t.Errorf("%d operations are open", open)
	}
	// A caller without credentials does not learn which paths there are.
	if got := s.send(t, ask{method: "GET", path: "/v1/nothing"}); volatile.ReplaceAllString(got.raw, "0") != words {
		t.Errorf("a path that is none: %d %s", got.status, got.raw)
	}
}

func badCredentials(t *testing.T, s *site) {
	good := s.secrets[rival]
	for _, bad := range []string{
		good[:len(good)-1], good + "0", strings.ToUpper(good), "ilk_", strings.TrimPrefix(good, "ilk_"), good[:20],
		good + " " + good, good + "," + s.secrets[acme],
		strings.Repeat("a", 600), strings.Repeat("a", 20_000), "null", "undefined", "*", "' or 1=1 --", good + "%00",
		"ilk_" + strings.Repeat("0", 64),
	} {
		if got := s.agentWith(t, bad); !got.is(401, "unauthenticated") {
			t.Errorf("%.40q: %d %s", bad, got.status, got.raw)
		}
	}
	for _, header := range [][]string{
		{"Authorization", "Basic " + good},
		{"Authorization", good},
		{"Authorization", "Bearer"},
		{"Authorization", "Token " + good},
		{"Cookie", "authorization=" + good},
		{"X-Api-Key", good},
		{"Proxy-Authorization", "Bearer " + good},
	} {
		if got := s.send(t, ask{method: "GET", path: "/v1/keys", header: header}); !got.is(401, "unauthenticated") {
			t.Errorf("%v: %d", header[0], got.status)
		}
	}
	if got := s.send(t, ask{method: "GET", path: "/v1/keys?access_token=" + good}); got.status != 401 {
		t.Errorf("in the address: %d", got.status)
	}
	if got := s.raw(
		t, "GET /v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+good+"\x00\r\nConnection: close\r\n\r\n",
	); got == nil ||
		got.status != 400 && got.status != 401 {
		t.Errorf("with NUL: %+v", got)
	}
	s.agentWith(t, good).want(200)
}

func (s *site) agentWith(t *testing.T, credential string) *answer {
	t.Helper()
	return s.send(t, ask{method: "GET", path: "/v1/keys", as: credential})
}

func otherNamespace(t *testing.T, s *site) {
	for _, op := range s.operations(t) {
		if op.open {
			continue
		}
		a := op.call(op.trials()[0], sampleIDs, op.credential(s, rival))
		a.header = append(a.header, "Interlock-Namespace", acme)
		if got := s.send(t, a); !got.is(403, "forbidden") {
			t.Errorf("%s: %d %s", op.id, got.status, got.raw)
		}
	}
	for _, spelling := range []string{
		"ACME", "acme/", "acme/x", "acme%2fx", "acm/../acme", "acm acme", "acm,acme", "acme-2", "*", "default", "acme\u200b",
	} {
		if got := s.agent(t, rival, "GET", "/v1/keys", "", "Interlock-Namespace", spelling); got.status != 403 &&
			got.status != 400 {
			t.Errorf("%q: %d %s", spelling, got.status, got.raw)
		}
	}
	s.agent(t, rival, "GET", "/v1/keys", "", "Interlock-Namespace", rival, "Interlock-Namespace", acme).want(
		400, "invalid_namespace",
	)
	s.agent(t, rival, "GET", "/v1/keys", "", "Interlock-Namespace", rival).want(200)
}

func streamCredentials(t *testing.T, s *site) {
	for _, c := range []struct {
		name string
		md   []string
		code interlock.Code
	}{
		{"nothing", nil, interlock.CodeUnauthenticated},
		{"a wrong one", []string{"authorization", "Bearer ilk_" + strings.Repeat("0", 64)}, interlock.CodeUnauthenticated},
		{
			"two",
			[]string{"authorization", "Bearer " + s.secrets[rival], "authorization", "Bearer " + s.secrets[acme]},
			interlock.CodeUnauthenticated,
		},
		{
			"another namespace",
			[]string{"authorization", "Bearer " + s.secrets[rival], "interlock-namespace", acme},
			interlock.CodeForbidden,
		},
		{
			"a namespace that is none",
			[]string{"authorization", "Bearer " + s.secrets[rival], "interlock-namespace", "a b"},
			interlock.CodeForbidden,
		},
	} {
		l := s.stream(t, c.md...)
		l.send(openOp(1, "eve"))
		if code := l.ends(); code != c.code {
			t.Errorf("%s: the stream ended with %q, want %q", c.name, code, c.code)
		}
	}
}

func notOperators(t *testing.T, s *site) {
	before, tried := s.index(t), 0
	for _, op := range s.operations(t) {
		if !op.only {
			continue
		}
		tried++
		for _, tr := range op.trials() {
			if got := s.send(t, op.call(tr, sampleIDs, s.secrets[rival])); !got.is(403, "forbidden") {
				t.Errorf("%s: %d %s", op.id, got.status, got.raw)
			}
		}
	}
	// The keys that sign fences are those of all tenants.
	s.operator(t, rival, "POST", "/v1/fences/keys/rotate", `{}`).want(403, "forbidden")
	if tried < 12 {
		t.Errorf("%d operations are for operators", tried)
	}
	l := s.agentStream(t, rival)
	for i, op := range operatorOps() {
		op.Seq = uint64(i + 1)
		l.send(op)
		if got := l.reply(op.Seq); got.Code != interlock.CodeForbidden {
			t.Errorf("operation %d over the stream: %q %s", op.Kind, got.Code, got.Message)
		}
	}
	s.unchanged(t, before)
}

func revoked(t *testing.T, s *site) {
	secret, line, err := server.NewCredential(interlock.Principal{Name: "short-lived"}, rival)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	s.reload(t, string(content)+line+"\n")
	s.agentWith(t, secret).want(200)
	l := s.stream(t, "authorization", "Bearer "+secret)
	l.send(openOp(1, "short-lived"))
	l.reply(1)
	kept := s.agentStream(t, rival)
	kept.send(openOp(1, "kept"))
	kept.reply(1)
	events := s.follow(t, secret, "/v1/events?follow=true")
	events.until(`"short-lived"`)
	watch := s.follow(t, secret, "/v1/watch?from=1")
	waiting := make(chan *answer, 1)
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"g:revoked"}]}`).want(200)
	go func() {
		waiting <- s.send(
			t,
			ask{
				method: "POST", path: "/v1/leases", as: secret,
				body: `{"agent":"short-lived-wait","wait_ms":15000,"claims":[{"key":"g:revoked"}]}`,
			},
		)
	}()
	busy.Wait(t, "somebody waits", func() bool {
		return strings.Contains(s.agent(t, rival, "GET", "/v1/keys/g:revoked", "").raw, "short-lived-wait")
	})

	s.reload(t, string(content))
	s.agentWith(t, secret).want(401, "unauthenticated")
	if code := l.ends(); code != interlock.CodeUnauthenticated {
		t.Errorf("the stream ended with %q", code)
	}
	events.ends()
	watch.ends()
	if got := <-waiting; !got.is(401, "unauthenticated") {
		t.Errorf("the call that waited: %d %s", got.status, got.raw)
	}
	kept.send(openOp(2, "still"))
	kept.reply(2)
	s.agentWith(t, s.secrets[rival]).want(200)
}

func oldTLS(t *testing.T, s *site) {
	for _, addr := range []string{s.server.HTTP, s.server.GRPC, s.server.RESP} {
		c, err := net.DialTimeout("tcp", addr, busy.Patience())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(busy.Patience()))
		fmt.Fprintf(c, "GET /v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.secrets[rival])
		b := make([]byte, 512)
		n, _ := c.Read(b)
		if text := string(b[:n]); strings.Contains(text, "200") || strings.Contains(text, "{") {
			t.Errorf("%s answers plain text: %q", addr, text)
		}
		for version, name := range map[uint16]string{tls.VersionTLS10: "1.0", tls.VersionTLS11: "1.1"} {
			old := &tls.Config{RootCAs: s.roots, MinVersion: version, MaxVersion: version}
			if c, err := tls.Dial("tcp", addr, old); err == nil {
				c.Close()
				t.Errorf("%s speaks TLS %s", addr, name)
			}
		}
	}
	// A client that does not know the certificate sends no credential.
	if _, err := tls.Dial("tcp", s.server.HTTP, &tls.Config{MinVersion: tls.VersionTLS12}); err == nil {
		t.Error("a certificate that nobody signed is taken")
	}
	d := net.Dialer{Timeout: busy.Patience()}
	c, err := (&tls.Dialer{NetDialer: &d, Config: s.tls()}).DialContext(context.Background(), "tcp", s.server.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func publicAddress(t *testing.T, s *site) {
	for _, flags := range [][]string{
		{"--http", "0.0.0.0:0"}, {"--grpc", "[::]:0"}, {"--http", ":0"}, {"--resp", "0.0.0.0:0"},
	} {
		out, code := s.command(
			t, "",
			append([]string{"serve", "--data-dir", t.TempDir(), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"}, flags...)...,
		)
		if code != 2 || !strings.Contains(out, "no credentials are set") {
			t.Errorf("%v: exit code %d, %s", flags, code, out)
		}
	}
	out, code := s.command(
		t, "", "serve", "--data-dir", t.TempDir(), "--credentials", s.credentials, "--resp", "0.0.0.0:0", "--resp-test",
	)
	if code != 2 || !strings.Contains(out, "--resp-test lets any client delete the keys of others") {
		t.Errorf("--resp-test: exit code %d, %s", code, out)
	}
}

func atRest(t *testing.T, s *site) {
	content, err := os.ReadFile(s.credentials)
	if err != nil {
		t.Fatal(err)
	}
	for tenant := range s.secrets {
		if strings.Contains(string(content), s.secrets[tenant]) || strings.Contains(string(content), s.secrets[tenant][4:40]) {
			t.Errorf("the secret of %s is in the file", tenant)
		}
	}
	if n := onlyOurs(t, s.dir); n < 2 {
		t.Errorf("%d files", n)
	}
}

// onlyOurs checks that no other user may read the files of a directory, and counts them.
func onlyOurs(t *testing.T, dir string) (n int) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		n++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
	return n
}
