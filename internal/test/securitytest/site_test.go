package securitytest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/server"
)

// Two tenants, each with an agent's credential and an operator's. acme has something of
// everything (see world_test.go), and everything of it has acme's mark in its name; rival is
// the attacker, where a tenant is needed. The one's name begins with the other's, so that a
// comparison of beginnings shows.
const (
	acme  = "acme"
	rival = "acm"
	mark  = "acmemark"
)

// site is a server, and all that it and the commands have said.
type site struct {
	dir         string // of the journal
	files       map[string]string
	credentials string // the file
	roots       *x509.CertPool
	certificate string // its file, which clients trust
	server      *launch.Server
	web         *http.Client
	secrets     map[string]string // agent's credential by tenant
	operators   map[string]string
	servers     map[string]string // with every role
	key         string            // a line of the certificate's key
	log         *transcript
	said        *transcript // by the server, to any caller, over HTTP and the stream

	theirs, never things    // what acme has, and what never was, once a case has asked
	shown         *evidence // a signed statement, likewise
}

// transcript collects what is written to it, for the search for secrets.
type transcript struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// newSite starts a server with everything on, and with some more flags.
func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	top := t.TempDir()
	s := &site{
		dir: filepath.Join(top, "data"), credentials: filepath.Join(top, "credentials"), files: map[string]string{},
		secrets: map[string]string{}, operators: map[string]string{}, servers: map[string]string{}, log: new(transcript),
		said: new(transcript),
	}
	var lines []string
	for _, tenant := range []string{acme, rival} {
		for kind, list := range map[string]map[string]string{
			"agents": s.secrets, "operators": s.operators, "servers": s.servers,
		} {
			p := interlock.Principal{Name: tenant + "-" + kind, Roles: interlock.AllRoles, Queues: []string{"*"}}
			switch kind {
			case "agents":
				p.Roles &^= interlock.RoleOperator | interlock.RoleServer | interlock.RoleMetrics
			case "operators":
				p.Roles &^= interlock.RoleServer | interlock.RoleMetrics
			case "servers":
				p.Roles &^= interlock.RoleMetrics
			}
			secret, line, err := server.NewCredential(p, interlock.Namespace(tenant))
			if err != nil {
				t.Fatal(err)
			}
			list[tenant] = secret
			lines = append(lines, line)
		}
		s.files[tenant] = filepath.Join(top, tenant)
		if err := os.Mkdir(s.files[tenant], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, s.credentials, strings.Join(lines, "\n")+"\n")
	keyFile := s.certify(t, top)
	s.server = launchtest.Start(t, launch.Config{DataDir: s.dir, Log: s.log, Args: append([]string{
		"--credentials", s.credentials, "--tls-cert", s.certificate, "--tls-key", keyFile,
		"--files", acme + "=" + s.files[acme] + "," + rival + "=" + s.files[rival],
		"--resp", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json",
	}, args...)})
	transport := &http.Transport{TLSClientConfig: s.tls(), MaxIdleConnsPerHost: 64, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	s.web = &http.Client{Transport: transport, Timeout: busy.Patience()}
	return s
}

// reload changes the server's credentials, and waits until it has read them.
func (s *site) reload(t *testing.T, lines string) {
	t.Helper()
	s.write(t, s.credentials, lines)
	const done = "credentials were read again"
	seen := strings.Count(s.log.String(), done)
	if err := s.server.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	busy.Wait(t, done, func() bool { return strings.Count(s.log.String(), done) > seen })
}

func (s *site) tls() *tls.Config { return &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12} }

func (s *site) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// certify makes a certificate for 127.0.0.1.
func (s *site) certify(t *testing.T, dir string) (keyFile string) {
	t.Helper()
	s.certificate, keyFile = certtest.SelfSigned(t, dir, 1)
	s.roots = certtest.Roots(t, s.certificate)
	secret, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.Split(string(secret), "\n")[1]
	return keyFile
}

// connect opens a connection to the HTTP port, for data that no client would send.
func (s *site) connect(t *testing.T) net.Conn {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: busy.Patience()}, "tcp", s.server.HTTP, s.tls())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(busy.Patience())); err != nil {
		t.Fatal(err)
	}
	return c
}

// command runs the command as a tenant's agent, and returns its outputs.
func (s *site) command(t *testing.T, tenant string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), launchtest.Binary(t), args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "INTERLOCK_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "NO_COLOR=1", "LC_ALL=C.UTF-8")
	if tenant != "" {
		cmd.Env = append(cmd.Env, "INTERLOCK_URL=https://"+s.server.HTTP, "INTERLOCK_GRPC="+s.server.GRPC,
			"INTERLOCK_TLS_CA="+s.certificate, "INTERLOCK_CREDENTIAL="+s.secrets[tenant])
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	_, _ = s.said.Write(both.Bytes())
	return both.String(), cmd.ProcessState.ExitCode()
}

// known is command for one that must exist with these arguments, whatever its exit code.
func (s *site) known(t *testing.T, tenant string, args ...string) string {
	t.Helper()
	out, code := s.command(t, tenant, args...)
	if code == 2 {
		t.Errorf("interlock %s: exit code 2: %s", strings.Join(args, " "), out)
	}
	return out
}
