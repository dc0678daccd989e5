//go:build unix

package main

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// A server hangs up at an address with http: that may be a server that speaks TLS.
func TestServerHangsUp(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.TLS = &tls.Config{NextProtos: []string{"interlock/1"}}
	stranger.StartTLS()
	defer stranger.Close()
	address := stranger.Listener.Addr().String()
	p := startProc(
		t, append(cleanEnvironment(), "INTERLOCK_URL=http://"+address, "INTERLOCK_GRPC="+address), "run", "a", "--", "true",
	)
	if out := p.ends(cli.ExitUnreachable); !strings.Contains(out, "use https://"+address) ||
		strings.Contains(out, "interlock serve") {
		t.Errorf("it said:\n%s", out)
	}
}

// Where no TLS comes about nothing was sent, and the next step is another than to start a
// server.
func TestServerIsNotTrusted(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.TLS = &tls.Config{NextProtos: []string{"interlock/1", "http/1.1"}}
	stranger.StartTLS()
	defer stranger.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, tt := range []struct{ address, says string }{
		{stranger.Listener.Addr().String(), "is not trusted (x509: "},
		{plain.Listener.Addr().String(), "does not speak TLS: use an address with http"},
	} {
		for _, command := range [][]string{{"key", "list"}, {"lock", "a"}, {"run", "a", "--", "true"}} {
			p := startProc(
				t, append(cleanEnvironment(), "INTERLOCK_URL=https://"+tt.address, "INTERLOCK_GRPC="+tt.address), command...,
			)
			if out := p.ends(cli.ExitUnreachable); !strings.Contains(out, tt.says) || strings.Contains(out, "interlock serve") {
				t.Errorf("%s: it said:\n%s", command[0], out)
			}
		}
	}
}
