package deploy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	core "k8s.io/api/core/v1"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/certtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// running is a server that was started with the arguments and the variables of a container.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string   // of its standard output
	log   *bytes.Buffer // to be read when it has ended
	url   string        // its own, as a probe reaches it
	probe *core.Container
	roots *x509.CertPool // its certificate; nil without TLS
}

// podIPs counts the addresses that servers were given.
var podIPs atomic.Uint32

// podIP returns an address of this machine that no other server of the tests has, as each pod has one.
func podIP() string {
	process := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(process >> 8 & 0x7f), byte(process), byte(podIPs.Add(1) + 1)}).String()
}

// run starts the server as a kubelet would, but on an address of loopback and below the folder dir. The variables of
// OpenTelemetry are the test's own.
func run(t *testing.T, c *core.Container, dir string, secrets map[string]string) *running {
	t.Helper()
	ip := podIP()
	s := &running{
		t: t, cmd: command(t, c, dir, ip, secrets), lines: make(chan string, 16), log: new(bytes.Buffer), probe: c,
		url: "http://" + ip + ":7420",
	}
	if c.ReadinessProbe.HTTPGet.Scheme == core.URISchemeHTTPS {
		s.url, s.roots = "https://"+ip+":7420", certtest.Roots(t, filepath.Join(dir, "tls/tls.crt"))
	}
	s.cmd.Stderr = io.MultiWriter(s.log, t.Output())
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.lines <- lines.Text()
		}
	}()
	return s
}

// command returns what a container runs, on an address of loopback and below the folder dir.
func command(t *testing.T, c *core.Container, dir, ip string, secrets map[string]string) *exec.Cmd {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from.FieldRef != nil && from.FieldRef.FieldPath == "status.podIP":
			variables[e.Name] = ip
		case from.SecretKeyRef != nil:
			variables[e.Name] = secrets[from.SecretKeyRef.Name+"/"+from.SecretKeyRef.Key]
		default:
			t.Fatalf("the variable %s comes from %+v", e.Name, from)
		}
	}
	var args []string
	for _, arg := range c.Args {
		for name, value := range variables {
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		arg = strings.ReplaceAll(arg, "=0.0.0.0:", "="+ip+":")
		for _, m := range c.VolumeMounts {
			arg = strings.ReplaceAll(arg, m.MountPath, filepath.Join(dir, m.Name))
		}
		args = append(args, arg)
	}
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = launch.Attributes()
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "OTEL_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// becomes waits for the line with which a server begins a role.
func (s *running) becomes(role string) {
	s.t.Helper()
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the server ended before it was %s", role)
			}
			if strings.HasPrefix(line, role+" ") {
				return
			}
		case <-time.After(busy.Patience()):
			s.t.Fatalf("the server is not %s", role)
		}
	}
}

// joins waits until the server is ready, by its probe, as a kubelet does.
func (s *running) joins() {
	s.t.Helper()
	s.becomes("standby")
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	late := time.After(busy.Patience())
	for s.status(s.probe.ReadinessProbe.HTTPGet.Path) != http.StatusOK {
		select {
		case <-again.C:
		case <-late:
			s.t.Fatal("the server is not ready")
		}
	}
	s.passes()
}

// stop ends the server as a kubelet does.
func (s *running) stop() { s.t.Helper(); s.stopWhile(func() {}) }

// stopWhile calls f while the server stops.
func (s *running) stopWhile(f func()) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	f()
	for range s.lines { // until it closes its output
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// status requests a path of the server.
func (s *running) status(path string) int {
	s.t.Helper()
	answer, err := s.client().Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// client returns one that trusts the server's certificate, for the name of its Service.
func (s *running) client() *http.Client {
	if s.roots == nil {
		return http.DefaultClient
	}
	security := &tls.Config{RootCAs: s.roots, ServerName: "prod-interlock.locks.svc"}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}}
}

// passes checks that all probes of the container pass.
func (s *running) passes() {
	s.t.Helper()
	for name, p := range map[string]*core.Probe{
		"startup": s.probe.StartupProbe, "liveness": s.probe.LivenessProbe, "readiness": s.probe.ReadinessProbe,
	} {
		if got := s.status(p.HTTPGet.Path); got != http.StatusOK || p.HTTPGet.Port.StrVal != "http" {
			s.t.Errorf("the %s probe of %s gets %d", name, p.HTTPGet.Path, got)
		}
	}
}

// container returns the container that the chart makes of a set of values.
func container(t *testing.T, values string) *core.Container {
	t.Helper()
	return &pod(t, objects(t, valuesOf(t, values))).Spec.Containers[0]
}

// The server starts with what the chart writes, and passes its probes.
func TestServerOnAVolume(t *testing.T) {
	dir := t.TempDir()
	credentials(t, dir, "acme")
	if err := os.MkdirAll(filepath.Join(dir, "data/lost+found"), 0o755); err != nil { // as on a fresh file system
		t.Fatal(err)
	}
	s := run(t, container(t, "file"), dir, nil)
	s.becomes("ready")
	s.passes()
	if got := s.status("/v1/status"); got != http.StatusUnauthorized {
		t.Errorf("without a credential the server answers %d", got)
	}
	s.stop()
	if _, err := os.Stat(filepath.Join(dir, "data/journal")); err != nil {
		t.Errorf("the journal is not in the volume: %v", err)
	}
}

// A rollout starts a new server, waits until it is ready, and stops an old one. At each step every server that is ready
// answers for every namespace, by way of its owner, and what was leased before stays leased.
func TestRolloutOverPostgres(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) { rollOut(t, secure) })
	}
}

func rollOut(t *testing.T, secure bool) {
	database := postgrestest.Start(t, "-c", "fsync=on")
	in, dir := valuesOf(t, "postgres"), t.TempDir()
	if secure {
		in.values["tls"] = map[string]any{"secret": "interlock-tls"}
		certificates(t, filepath.Join(dir, "tls"))
	}
	c := &pod(t, objects(t, in)).Spec.Containers[0]
	secrets := map[string]string{
		"interlock-journal/url": database.URL(t), "interlock-journal/password": "unused",
	}
	start := func() *running {
		s := run(t, c, dir, secrets)
		s.joins()
		return s
	}
	agents := credentials(t, dir, "acme", "globex", "hooli", "initech", "umbrella", "default")
	serving := []*running{start(), start()}
	for namespace, secret := range agents {
		if holder := serving[0].claims(secret, "first"); holder != "first" {
			t.Errorf("in %s the key is held by %q", namespace, holder)
		}
	}
	for range 2 {
		serving = append(serving, start())
		serving[0].stop()
		serving = serving[1:]
		for namespace, secret := range agents {
			for _, s := range serving {
				if holder := s.claims(secret, "second"); holder != "first" {
					t.Errorf("after a step the key of %s is held by %q, by the word of %s", namespace, holder, s.url)
				}
			}
		}
	}
}

// A server that does not reach the journal is alive and never ready, so that a rollout with a wrong URL stops there.
func TestRolloutOfAWrongURL(t *testing.T) {
	dir := t.TempDir()
	credentials(t, dir, "acme")
	s := run(t, container(t, "postgres"), dir, map[string]string{
		"interlock-journal/url": "postgres://interlock@127.0.0.1:1/none", "interlock-journal/password": "unused",
	})
	s.becomes("standby")
	for path, want := range map[string]int{
		s.probe.LivenessProbe.HTTPGet.Path: http.StatusOK, s.probe.ReadinessProbe.HTTPGet.Path: http.StatusServiceUnavailable,
	} {
		if got := s.status(path); got != want {
			t.Errorf("%s answers %d, want %d", path, got, want)
		}
	}
	s.stop()
}

// A backup of a server is restored by the job of the chart, into another folder of the volume or another journal of
// the database, and the servers that are started then have its leases. A job that is carried out once more changes
// nothing.
func TestRestoreByAJob(t *testing.T) {
	t.Run("file", func(t *testing.T) { restoreByJob(t, "file", nil, nil) })
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Start(t, "-c", "fsync=on").URL(t)
		between := "?"
		if strings.Contains(url, "?") {
			between = "&"
		}
		secrets := func(url string) map[string]string {
			return map[string]string{"interlock-journal/url": url, "interlock-journal/password": "unused"}
		}
		restoreByJob(t, "postgres", secrets(url), secrets(url+between+"journal=second"))
	})
}

func restoreByJob(t *testing.T, form string, first, second map[string]string) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	in, dir := valuesOf(t, form), t.TempDir()
	agents := credentials(t, dir, "acme")
	made, err := exec.Command(
		path, "credential", "create", "backup", "--role", "server",
		"--file", filepath.Join(dir, "credentials/credentials.txt"),
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(string(made), "\n")
	s := run(t, container(t, form), dir, first)
	s.becomes("ready")
	s.claims(agents["acme"], "first")
	backup := exec.Command(path, "admin", "backup", "--to", filepath.Join(dir, "backup/of-may"), "--url", s.url)
	backup.Env = []string{"INTERLOCK_CREDENTIAL=" + secret, "HOME=" + dir}
	if err := os.Mkdir(filepath.Join(dir, "backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.stop()

	in.values = chartutil.CoalesceTables(map[string]any{
		"journal": map[string]any{"volume": map[string]any{"folder": "second"}},
		"restore": map[string]any{"claim": "backups", "path": "of-may"},
	}, in.values)
	all := objects(t, in)
	jobs := of[*job](all)
	if len(jobs) != 1 {
		t.Fatalf("there are %d jobs", len(jobs))
	}
	c := &jobs[0].Spec.Template.Spec.Containers[0]
	for i, want := range []bool{true, false} {
		out, err := command(t, c, dir, "", second).CombinedOutput()
		if (err == nil) != want || !want && !strings.Contains(string(out), "nothing of it was changed") {
			t.Errorf("the job, carried out %d times: %v: %s", i+1, err, out)
		}
	}
	s = run(t, &pod(t, all).Spec.Containers[0], dir, second)
	s.becomes("ready")
	if holder := s.claims(agents["acme"], "second"); holder != "first" {
		t.Errorf("after the restore the key is held by %q", holder)
	}
	s.stop()
}

// claims requests a key in the namespace of a credential until the server answers, and returns the key's holder.
func (s *running) claims(secret, agent string) (holder string) {
	s.t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	late := time.After(busy.Patience())
	for {
		body := `{"claims": [{"key": "account:1"}], "ttl_ms": 60000, "agent": "` + agent + `"}`
		r, err := http.NewRequest(http.MethodPost, s.url+"/v1/leases", strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+secret)
		answer, err := s.client().Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		var said struct {
			Lease   struct{ State string }
			Holders []struct{ Agent string }
			Detail  string
		}
		err = json.NewDecoder(answer.Body).Decode(&said)
		answer.Body.Close()
		switch {
		case err != nil:
			s.t.Fatal(err)
		case answer.StatusCode == http.StatusOK:
			return agent
		case answer.StatusCode == http.StatusConflict && len(said.Holders) > 0:
			return said.Holders[0].Agent
		case answer.StatusCode != http.StatusServiceUnavailable:
			s.t.Fatalf("%s answers %d: %s", s.url, answer.StatusCode, said.Detail)
		}
		select {
		case <-again.C:
		case <-late:
			s.t.Fatalf("%s does not answer: %s", s.url, said.Detail)
		}
	}
}

// credentials writes what the Secret with the credentials has, one for each namespace, and returns the secrets.
func credentials(t *testing.T, dir string, namespaces ...string) (secrets map[string]string) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "credentials/credentials.txt")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	secrets = map[string]string{}
	for _, namespace := range namespaces {
		out, err := exec.Command(path, "credential", "create", "agents", "--for", namespace, "--file", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		secrets[namespace], _, _ = strings.Cut(string(out), "\n")
	}
	return secrets
}

// certificates writes what a Secret of cert-manager has: one for the names of the Services, which signed itself.
func certificates(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	certificate, key := certtest.SelfSigned(t, dir, 1, "prod-interlock.locks.svc", "prod-interlock-peers.locks.svc")
	for name, file := range map[string]string{"tls.crt": certificate, "ca.crt": certificate, "tls.key": key} {
		if err := os.Link(file, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
