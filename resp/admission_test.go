package resp

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/server"
)

// TestQuota: the quotas of a namespace count for the door's commands, and never for a release.
func TestQuota(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		status, body := r.http(http.MethodPut, "/v1/namespace", `{"quota": {"requests_per_s": 2}}`)
		if status != http.StatusOK {
			t.Fatal(status, body)
		}
		r.wants("a", "SET k one NX EX 30", "+OK")
		r.wants("a", "GET k", "$one")
		r.wants("a", "GET k", "-ERR quota_exceeded: *")
		r.wants("a", "SET l one NX EX 30", "-ERR quota_exceeded: *")
		if got := r.do("a", "EVAL", kindText(t, "release"), "1", "k", "one"); got != ":1" {
			t.Errorf("the release: %s", got)
		}
	})
}

// TestStandby: a server that stands by refuses with the address of the active one, and the connection goes
// on when it becomes active itself.
func TestStandby(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "SET k one NX EX 30", "+OK")
		active := r.api
		other := func() server.Active { return server.Active{HTTP: "http://other:7420"} }
		standby, err := server.NewStandby(server.Config{}, other)
		if err != nil {
			t.Fatal(err)
		}
		r.api = standby
		r.wants("a", "GET k", "-READONLY not_owner: this server does not own the shard; the active one is http://other:7420*")
		r.wants("a", "SET k one NX EX 30", "-READONLY *")
		r.wants("a", "PING", "+PONG")
		r.api = active
		r.wants("a", "GET k", "$one")
		r.api.Drain()
		r.wants("a", "DEL k", ":1")
	})
}

// TestTLS: with a certificate the door speaks TLS and nothing else.
func TestTLS(t *testing.T) {
	certificate, key := certtest.SelfSigned(t, t.TempDir(), 1)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now() // the bubble has another time
	config := &tls.Config{
		RootCAs: certtest.Roots(t, certificate), ServerName: "127.0.0.1", Time: func() time.Time { return now },
	}
	inBubble(t, Config{TLS: &tls.Config{Certificates: []tls.Certificate{pair}}}, func(r *rig) {
		near, far := net.Pipe()
		client := tls.Client(near, config)
		r.conns["a"] = &peer{conn: client, in: bufio.NewReader(client)}
		go r.door.enter(far).serve()
		r.wants("a", "SET k one NX EX 30", "+OK")
		r.wants("a", "GET k", "$one")
		plain := r.peer("plain")
		go func() { _, _ = plain.conn.Write(encode([]string{"GET", "k"})) }()
		if answer, err := readAnswer(plain.in); err == nil && answer == "$one" {
			t.Errorf("without TLS: %s", answer)
		}
	})
}
