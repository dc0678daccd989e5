package server

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/certtest"
)

func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := certtest.SelfSigned(t, dir, 1)
	c, err := LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	serial := func() int64 {
		t.Helper()
		cert, err := c.current(nil)
		if err != nil {
			t.Fatal(err)
		}
		return cert.Leaf.SerialNumber.Int64()
	}
	older := time.Now().Add(-time.Minute)
	if err := os.Chtimes(certFile, older, older); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	certtest.SelfSigned(t, dir, 2)
	if got := serial(); got != 1 {
		t.Fatalf("serial %d before the files are looked at", got)
	}
	now = now.Add(checkEvery)
	if got := serial(); got != 2 {
		t.Fatalf("serial %d, want the new one", got)
	}
	if err := os.WriteFile(certFile, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(checkEvery)
	if got := serial(); got != 2 {
		t.Fatalf("serial %d, a broken file must not replace a good one", got)
	}
	if err := c.Reload(); err == nil || !strings.Contains(err.Error(), "cert.pem") {
		t.Fatalf("Reload of a broken file: %v", err)
	}
	if _, err := LoadCertificate(filepath.Join(dir, "absent"), keyFile, nil); err == nil {
		t.Fatal("an absent file was loaded")
	}
}

func TestHTTPOverTLS(t *testing.T) {
	d := newDoor(t)
	certFile, keyFile := certtest.SelfSigned(t, t.TempDir(), 1)
	c, err := LoadCertificate(certFile, keyFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.TLSConfig())
	if err != nil {
		t.Fatal(err)
	}
	srv := d.server.HTTPServer()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	roots := certtest.Roots(t, certFile)
	for _, http2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}
		answer, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 200 || answer.ProtoMajor != map[bool]int{false: 1, true: 2}[http2] {
			t.Errorf("%s %s", answer.Status, answer.Proto)
		}
		transport.CloseIdleConnections()
	}
	srv.Close()
	<-served
}
