package securitytest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// Hostile bytes at the Redis port, and too many of them.

func redisOtherProtocols(t *testing.T, s *site) {
	const page = "POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nOrigin: https://evil.example\r\nContent-Length: 99\r\n\r\n"
	evil := "AUTH " + s.secrets[rival] + "\r\nSET evil:1 x\r\n" + respCommand("SET", "evil:2", "x")
	for what, bytes := range map[string]string{
		"a form":        page + evil,
		"an image":      "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + evil,
		"a preflight":   "OPTIONS * HTTP/1.0\r\n\r\n" + evil,
		"a header":      "Host: 127.0.0.1\r\n" + evil,
		"HTTP/2":        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + evil,
		"TLS in TLS":    "\x16\x03\x01\x02\x00\x01\n" + evil,
		"a long header": "POST /" + strings.Repeat("x", 5000) + " HTTP/1.1\r\n" + evil,
	} {
		s.wire(t, "", "").ends(what, bytes)
	}
	plain, err := net.DialTimeout("tcp", s.server.RESP, busy.Patience())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(busy.Patience()))
	_, _ = io.WriteString(plain, evil)
	if b, err := io.ReadAll(plain); timedOut(err) || strings.Contains(string(b), "OK") {
		t.Errorf("plain text: %q, %v", b, err)
	}
	if got := s.raw(t, respCommand("SET", "evil:3", "x")); got != nil && got.status != 400 {
		t.Errorf("the HTTP port answers %+v", got)
	}
	c := s.session(t)
	_ = c.SetDeadline(time.Now().Add(busy.Patience()))
	_, _ = io.WriteString(c, respCommand("AUTH", s.secrets[rival])+respCommand("SET", "evil:4", "x"))
	if b, err := io.ReadAll(c); timedOut(err) || strings.Contains(string(b), "+OK") {
		t.Errorf("the session port answers %q, %v", b, err)
	}
	if got := s.agent(t, rival, "GET", "/v1/keys?prefix=evil:", "").want(200).raw; strings.Contains(got, "evil:") {
		t.Errorf("it was carried out: %s", got)
	}

	// Without TLS and credentials a page needs less.
	open := launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Args: []string{"--resp", "127.0.0.1:0"}})
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.DialTimeout("tcp", open.RESP, busy.Patience())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	s.wireOver(t, dial(), "", "").ends("a form", page+"SET evil:5 x\r\n")
	conn := dial()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(busy.Patience()))
	if err := tls.Client(conn, s.tls()).Handshake(); err == nil || timedOut(err) {
		t.Errorf("TLS to plain text: %v", err)
	}
	s.wireOver(t, dial(), "", "").want("nil", "GET", "evil:5")
}

func redisNames(t *testing.T, s *site) {
	w := s.wire(t, hostile[:40]+"\r\n+OK", s.secrets[rival])
	one := func(words ...string) string {
		t.Helper()
		got := w.do(words...)
		w.want("$in step", "ECHO", "in step") // no second answer was in it
		return got
	}
	for _, key := range []string{
		"names:1" + hostile, "names:1\r\n+OK", "names:1\x00", "names:1\u202e", "names:1\u200b", "\x1b[2J", "names:1\x7f",
		"names:1\xff", "",
	} {
		for _, words := range [][]string{
			{"SET", key, "x", "NX", "EX", "60"},
			{"GET", key},
			{"EXISTS", key},
			{"INTERLOCK.WHY", key},
			{"INTERLOCK.FENCE", key, "x"},
			{"EVAL", scripts(t)["release"], "1", key, "x"},
		} {
			got := one(words...)
			harmless(t, fmt.Sprintf("%s of %q", words[0], key), got)
			if !strings.HasPrefix(got, "-ERR invalid_key: ") {
				t.Errorf("%.60q: %s", words, got)
			}
		}
	}
	if got := one("SET", "names:1", hostile, "NX", "EX", "60"); got != "+OK" {
		t.Errorf("a value: %s", got)
	}
	if got := one("GET", "names:1"); got != "$"+hostile {
		t.Errorf("the value is %q", got)
	}
	s.agent(t, rival, "POST", "/v1/leases", `{"claims":[{"key":"names:2"}],"agent":`+quoteJSON(hostile)+`}`).want(200)
	for _, words := range [][]string{
		{"GET", "names:2"},
		{"INTERLOCK.WHY", "names:2"},
		{"INTERLOCK.WHY", "names:1"},
		{"SET", "names:2", "x"},
		{"CLIENT", "SETNAME", hostile},
		{"CLIENT", "SETINFO", "LIB-NAME", hostile},
		{"CLIENT", hostile},
		{"CLIENT", "INFO"},
		{hostile},
		{"SELECT", hostile},
		{"SET", "names:3", "x", hostile},
		{"SCRIPT", hostile},
		{"EVAL", hostile, "0"},
		{"EVALSHA", hostile, "0"},
		{"AUTH", hostile, hostile},
		{"HELLO", hostile},
		{"SET", "names:3", "x", "PX", hostile},
		{"COMMAND", hostile},
	} {
		harmless(t, fmt.Sprintf("%.60q", words), one(words...))
	}
	for _, path := range []string{"/v1/leases", "/v1/why?key=names:1", "/v1/keys?prefix=names:", "/v1/events"} {
		unharmful(t, path, s.agent(t, rival, "GET", path, "").want(200).raw)
	}
	for line := range strings.Lines(s.log.String()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("a line of the log: %q", line)
		}
	}
}

func redisOversize(t *testing.T, s *site) {
	argument := func(n int) string { return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	for what, bytes := range map[string]string{
		"a million arguments":        "*1000000\r\n",
		"more than 2^63 arguments":   "*9223372036854775808\r\n",
		"digits without end":         "*" + strings.Repeat("1", 100_000),
		"arguments one above all":    "*65\r\n" + strings.Repeat(argument(1), 65),
		"a gigabyte":                 "*1\r\n$1073741824\r\n",
		"an argument of 65 KB":       "*1\r\n" + argument(64<<10+1),
		"arguments of more than all": "*64\r\n" + strings.Repeat(argument(60_000), 20),
		"a length below zero":        "*1\r\n$-2\r\n",
		"a length with a sign":       "*1\r\n$+4\r\nPING\r\n",
		"a length in hex":            "*1\r\n$0x4\r\nPING\r\n",
		"a longer argument":          "*1\r\n$3\r\nPING\r\n",
		"lists in lists":             strings.Repeat("*1\r\n", 100_000),
		"a map":                      "*1\r\n%1\r\n+a\r\n+b\r\n",
		"a line without end":         strings.Repeat("x", 64<<10),
		"words without end":          strings.Repeat("x ", 70) + "\r\n",
		"a line feed alone":          "*1\n$4\nPING\n",
	} {
		s.wire(t, "", "").ends(what+", unknown", bytes)
		s.wire(t, "big", s.secrets[rival]).ends(what, bytes)
	}
	for what, bytes := range map[string]string{
		"17 arguments":          respCommand(strings.Fields("ECHO" + strings.Repeat(" x", 16))...),
		"an argument of 4 KB":   respCommand("ECHO", strings.Repeat("x", 4<<10+1)),
		"a command of 16 KB":    "*9\r\n" + argument(4) + strings.Repeat(argument(4<<10), 4),
		"a credential of 20 KB": respCommand("AUTH", strings.Repeat("x", 20_000)),
	} {
		s.wire(t, "", "").ends(what+", unknown", bytes)
		w := s.wire(t, "big", s.secrets[rival])
		w.want("+RESET", "RESET")
		w.ends(what+", after RESET", bytes)
	}
	w := s.wire(t, "big", s.secrets[rival])
	w.want("$xxxx", "ECHO", strings.Repeat("x", 64<<10))
	w.want("-ERR ", "SET", "large:1", strings.Repeat("x", 60_000), "NX")
	w.want("-ERR ", "SET", strings.Repeat("k", 60_000), "x", "NX")
	undisturbed(t, s)
}

func redisHalves(t *testing.T, s *site) {
	before := s.memory(t)
	var last []*wire
	for _, c := range []struct{ credential, said string }{
		{"", "*2\r\n$4\r\nEC"},
		{"", "AUTH ilk_"},
		{s.secrets[rival], "*64\r\n$65536\r\nx"},
		{s.secrets[rival], "SET half:1"},
	} {
		for i := range 50 {
			w := s.wire(t, "half", c.credential)
			if _, err := io.WriteString(w.conn, c.said); err != nil {
				t.Fatal(err)
			}
			if i == 49 {
				last = append(last, w)
			}
		}
	}
	slow, began := s.wire(t, "slow", s.secrets[rival]), time.Now()
	sent := make(chan time.Duration)
	go func() {
		for { // each of its bytes is in time
			if _, err := io.WriteString(slow.conn, "x"); err != nil || time.Since(began) > busy.Patience() {
				sent <- time.Since(began)
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	}()
	undisturbed(t, s)
	if grown := s.memory(t) - before; grown > 24<<20 {
		t.Errorf("3 KB in all, and memory grew by %.0f bytes", grown)
	}
	for i, w := range last {
		if got := w.answer(); got != "closed" {
			t.Errorf("connection %d: %s", i, got)
		}
	}
	if took := <-sent; took > busy.Patience() {
		t.Errorf("a client with one byte at a time is not cut off within %v", took)
	}
}

func redisNeverReading(t *testing.T, s *site) {
	before := s.memory(t)
	echo := respCommand("ECHO", strings.Repeat("x", 60_000))
	for range 40 {
		w := s.wire(t, "deaf", s.secrets[rival])
		go func() {
			for {
				if _, err := io.WriteString(w.conn, echo); err != nil {
					return
				}
			}
		}()
	}
	undisturbed(t, s)
	s.wire(t, "hears", s.secrets[rival]).want("+PONG", "PING")
	if grown := s.memory(t) - before; grown > 64<<20 {
		t.Errorf("memory grew by %.0f bytes", grown)
	}
}

func redisCrowd(t *testing.T, s *site) {
	const places = 16
	small := launchtest.Start(t, launch.Config{DataDir: t.TempDir(), Args: []string{
		"--resp", "127.0.0.1:0", "--credentials", s.credentials, "--max-connections", fmt.Sprint(places),
	}})
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.DialTimeout("tcp", small.RESP, busy.Patience())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	first := s.wireOver(t, dial(), "first", s.secrets[acme])
	var oldest net.Conn
	for range 4 * places {
		conn := dial()
		if oldest == nil {
			oldest = conn
		}
		_, _ = io.WriteString(conn, "PING\r\n")
	}
	s.wireOver(t, dial(), "second", s.secrets[acme]).want("+OK", "SET", "crowd:1", "x", "NX", "EX", "60")
	first.want("$x", "GET", "crowd:1")
	_ = oldest.SetDeadline(time.Now().Add(busy.Patience()))
	if _, err := io.Copy(io.Discard, oldest); timedOut(err) {
		t.Error("the oldest connection without a credential is still there")
	}
}
