package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/server"
)

// overEach runs a test for each way in which a session is carried; scheme stands before its
// addresses.
func overEach(t *testing.T, test func(t *testing.T, scheme string)) {
	for over, scheme := range transports {
		t.Run(over, func(t *testing.T) { test(t, scheme) })
	}
}

func TestNobodyListens(t *testing.T) { overEach(t, nobodyListens) }

func nobodyListens(t *testing.T, scheme string) {
	addr := busy.Ports(t, 1)[0]
	_, err := client.Dial(context.Background(), client.Config{Addrs: []string{scheme + addr}})
	if !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), addr) ||
		!strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "interlock serve --data-dir DIR") {
		t.Errorf("got %v", err)
	}
	// Another address that answers is enough.
	w := inMemory(t)
	c, err := client.Dial(context.Background(), client.Config{Addrs: []string{scheme + addr, scheme + w.listen()}})
	if err != nil {
		t.Fatal(err)
	}
	closeClient(t, c)
	if _, err := client.Dial(context.Background(), client.Config{}); err == nil {
		t.Error("dialled without an address")
	}
}

// A listener that accepts and never sends a word does not hold up a caller when its context
// ends.
func TestSilentListener(t *testing.T) { overEach(t, silentListener) }

func silentListener(t *testing.T, scheme string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Dial(
		ctx, client.Config{Addrs: []string{scheme + l.Addr().String()}},
	); !errors.Is(err, client.ErrUnreachable) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestCredentialsAndTLS(t *testing.T) { overEach(t, credentialsAndTLS) }

func credentialsAndTLS(t *testing.T, scheme string) {
	secret, line, err := server.NewCredential(interlock.Principal{Name: "swarm"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials, err := server.LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	w := inMemory(t)
	certFile, keyFile := certtest.SelfSigned(t, t.TempDir(), 1)
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if w.srv, err = server.New(server.Config{
		Shard: w.shard, Credentials: credentials, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}); err != nil {
		t.Fatal(err)
	}
	w.door = server.NewStreams(w.srv, server.StreamConfig{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	good := client.Config{
		Addrs: []string{scheme + w.listen()}, TLS: &tls.Config{RootCAs: certtest.Roots(t, certFile)}, Credential: secret,
		Namespace: "acme", Agent: "a",
	}

	c, err := client.Dial(context.Background(), good)
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	s := &stage{t: t, w: w, ctx: context.Background()}
	s.acquire(c, exclusively("k"))

	// The namespace is the credential's when none is named; it is the same one.
	unnamed := good
	unnamed.Namespace = ""
	other, err := client.Dial(context.Background(), unnamed)
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, other)
	if _, err := other.Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}}); !isCode(err, interlock.CodeHeld) {
		t.Errorf("got %v", err)
	}

	for name, refused := range map[string]struct {
		change func(*client.Config)
		code   interlock.Code
	}{
		"no credential":         {func(cfg *client.Config) { cfg.Credential = "" }, interlock.CodeUnauthenticated},
		"an unknown credential": {func(cfg *client.Config) { cfg.Credential = "ilk_wrong" }, interlock.CodeUnauthenticated},
		"another's namespace":   {func(cfg *client.Config) { cfg.Namespace = "other" }, interlock.CodeForbidden},
	} {
		cfg := good
		refused.change(&cfg)
		if _, err := client.Dial(context.Background(), cfg); !isCode(err, refused.code) {
			t.Errorf("%s: got %v", name, err)
		}
		cfg.Addrs = nil
		if _, err := client.New(context.Background(), w.door.Dial, cfg); !isCode(err, refused.code) {
			t.Errorf("%s, embedded: got %v", name, err)
		}
	}
	plain := good
	plain.TLS = nil
	if _, err := client.Dial(context.Background(), plain); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("plain text: got %v", err)
	}
	stranger := good
	stranger.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
	if _, err := client.Dial(context.Background(), stranger); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("a certificate that nobody vouches for: got %v", err)
	}
}

// A listener that is not a session port is reported as such.
func TestStrangeListener(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, err := client.Dial(context.Background(), client.Config{Addrs: []string{web.Listener.Addr().String()}})
	if !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "not the session port") {
		t.Errorf("got %v", err)
	}
}
