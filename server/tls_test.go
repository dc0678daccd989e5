package server

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// The authority of the servers is replaced without a restart: both are trusted for a while.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	oldCert, oldKey := certtest.SelfSigned(t, t.TempDir(), 1)
	newCert, newKey := certtest.SelfSigned(t, t.TempDir(), 2)
	listen := func(certFile, keyFile string) Active {
		c, err := LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Listener = tls.NewListener(s.Listener, c.TLSConfig())
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.Start()
		t.Cleanup(s.Close)
		addr := s.Listener.Addr().String()
		return Active{HTTP: "https://" + addr, GRPC: addr}
	}
	before, after := listen(oldCert, oldKey), listen(newCert, newKey)
	file := filepath.Join(t.TempDir(), "ca.pem")
	write := func(files ...string) {
		t.Helper()
		var text []byte
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, b...)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(oldCert)
	var log strings.Builder
	trusted, err := LoadAuthorities(file, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	trusted.now = func() time.Time { return now }
	f := NewForwarder(&tls.Config{MinVersion: tls.VersionTLS12}, trusted)
	t.Cleanup(f.Close)
	see := func(when string, old, next bool) {
		t.Helper()
		for _, s := range []struct {
			what string
			at   Active
			want bool
		}{{"the old certificate", before, old}, {"the new certificate", after, next}} {
			// A probe connects each time, as a stream does. A forwarded call connects if no connection is open.
			err := f.Probe(t.Context(), s.at)
			if (err == nil) != s.want {
				t.Errorf("%s: a probe of a server with %s: %v", when, s.what, err)
			}
			conn, err := f.connect(t.Context(), s.at.GRPC, []string{"h2"})
			if err == nil {
				err = conn.Close()
			}
			if (err == nil) != s.want {
				t.Errorf("%s: a stream to a server with %s: %v", when, s.what, err)
			}
		}
	}
	see("at first", true, false)
	write(oldCert, newCert)
	see("before the next look", true, false)
	now = now.Add(checkEvery)
	see("with both", true, true)
	write(newCert)
	now = now.Add(checkEvery)
	see("with the new one", false, true)
	for _, broken := range []string{"", "half", "-----BEGIN CERTIFICATE-----\nMIIB"} {
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(checkEvery)
		see("with a broken file", false, true)
		if !strings.Contains(log.String(), "ca.pem contains no certificate") {
			t.Errorf("the log is %q", log.String())
		}
		if err := trusted.Reload(); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	now = now.Add(checkEvery)
	see("without a file", false, true)
	write(oldCert)
	if err := trusted.Reload(); err != nil {
		t.Fatal(err)
	}
	see("after Reload", true, false)
}
