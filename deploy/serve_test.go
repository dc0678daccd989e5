package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// patience is how long a test waits for a line of a server.
const patience = 30 * time.Second

// running is a server that was started with the arguments and the variables of a container.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string   // of its standard output
	log   *bytes.Buffer // to be read when it has ended
	http  string        // its address, once it has printed one
	probe *core.Container
}

// run starts the server as a kubelet would, but on loopback and below the folder dir. The variables of OpenTelemetry are
// the test's own.
func run(t *testing.T, c *core.Container, dir string, secrets map[string]string) *running {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from.FieldRef != nil && from.FieldRef.FieldPath == "status.podIP":
			variables[e.Name] = "127.0.0.1"
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
		arg = strings.ReplaceAll(arg, "=0.0.0.0:7420", "=127.0.0.1:0")
		arg = strings.ReplaceAll(arg, "=0.0.0.0:7421", "=127.0.0.1:0")
		for _, m := range c.VolumeMounts {
			arg = strings.ReplaceAll(arg, m.MountPath, filepath.Join(dir, m.Name))
		}
		args = append(args, arg)
	}
	s := &running{
		t: t, cmd: exec.Command(path, args...), lines: make(chan string, 16), log: new(bytes.Buffer), probe: c,
	}
	s.cmd.Stderr, s.cmd.SysProcAttr = io.MultiWriter(s.log, t.Output()), launch.Attributes()
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "OTEL_") {
			s.cmd.Env = append(s.cmd.Env, e)
		}
	}
	for name, value := range variables {
		s.cmd.Env = append(s.cmd.Env, name+"="+value)
	}
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

// becomes waits for the line with which a server begins a role.
func (s *running) becomes(role string) {
	s.t.Helper()
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the server ended before it was %s", role)
			}
			if _, err := fmt.Sscanf(line, role+" http=%s", &s.http); err == nil {
				return
			}
		case <-time.After(patience):
			s.t.Fatalf("the server is not %s", role)
		}
	}
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
	answer, err := http.Get("http://" + s.http + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
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
	credentials := filepath.Join(dir, "credentials/credentials.txt")
	if err := os.MkdirAll(filepath.Dir(credentials), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data/lost+found"), 0o755); err != nil { // as on a fresh file system
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	create := exec.Command(path, "credential", "create", "agents", "--for", "acme", "--file", credentials)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
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

// A rollout starts a new server, waits until it is ready, and stops an old one. It comes to its end whatever the roles
// are: a standby passes the probes, too. The path without a role finds the active server at each step.
func TestRolloutOverPostgres(t *testing.T) {
	database := postgrestest.Start(t, "-c", "fsync=on")
	c := container(t, "postgres")
	secrets := map[string]string{
		"interlock-journal/url": database.URL(t), "interlock-journal/password": "unused",
	}
	for i, arg := range c.Args {
		if strings.HasPrefix(arg, "--credentials=") {
			c.Args[i] = "--insecure"
		}
	}
	start := func() *running { return run(t, c, t.TempDir(), secrets) }
	old := []*running{start()}
	old[0].becomes("ready")
	old = append(old, start())
	old[1].becomes("standby")
	roles := func(active, standby *running) {
		t.Helper()
		for _, s := range []*running{active, standby} {
			s.passes()
		}
		if a, b := active.status("/readyz"), standby.status("/readyz"); a != 200 || b != 503 {
			t.Errorf("/readyz without a role answers %d at the active server and %d at the standby", a, b)
		}
	}
	roles(old[0], old[1])

	first := start()
	first.becomes("standby")
	first.passes()
	old[1].stop() // the standby
	roles(old[0], first)
	second := start()
	second.becomes("standby")
	second.passes()
	old[0].stop() // the active one
	active, standby := first, second
	select {
	case line := <-first.lines:
		if !strings.HasPrefix(line, "ready ") {
			t.Fatalf("the first new server prints %q", line)
		}
	case line := <-second.lines:
		if !strings.HasPrefix(line, "ready ") {
			t.Fatalf("the second new server prints %q", line)
		}
		active, standby = second, first
	case <-time.After(patience):
		t.Fatal("no new server has taken over")
	}
	roles(active, standby)
}
