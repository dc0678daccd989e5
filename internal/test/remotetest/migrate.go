package remotetest

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// run runs the program to its end.
func run(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// Migrate moves a stopped server's state to the engine and back: the lease is held, the next fence is far above,
// and neither a running server nor an existing journal is touched.
func Migrate(t *testing.T, e Engine) {
	dir, to := t.TempDir(), e.URL("moved")
	ports := FreePorts(t, 2)
	s := ServeAt(t, nil, ports[0], ports[1], "--data-dir", dir)
	s.Becomes("ready")
	ctx := t.Context()
	held, err := s.call(
		ctx, http.MethodPost, "/v1/leases", `{"agent":"holder","ttl_ms":600000,"claims":[{"key":"account:1"}]}`,
	)
	if err != nil || held.status != 200 {
		t.Fatalf("acquire: %+v, %v", held, err)
	}
	if code, said := run(t, "admin", "migrate", "--from", dir, "--to", to); code != 4 {
		t.Fatalf("migrate from a server that runs: exit code %d: %s", code, said)
	}
	s.signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s.cmd = nil
	if code, said := run(t, "admin", "migrate", "--from", dir, "--to", to); code != 0 {
		t.Fatalf("migrate: exit code %d: %s", code, said)
	}
	if code, said := run(t, "admin", "migrate", "--from", dir, "--to", to); code != 2 ||
		!strings.Contains(said, "a journal already") {
		t.Fatalf("migrate to a journal that is there: exit code %d: %s", code, said)
	}
	if code, said := run(t, "admin", "migrate", "--from", dir+"/none", "--to", e.URL("other")); code != 1 {
		t.Fatalf("migrate from nothing: exit code %d: %s", code, said)
	}
	one := Serve(t, to)
	one.Becomes("ready")
	renewed, err := one.call(ctx, http.MethodPost, "/v1/leases/"+held.Lease.ID+"/renew", "{}")
	if err != nil || renewed.status != 200 {
		t.Fatalf("the lease after the move: %+v, %v", renewed, err)
	}
	next, err := one.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:2"}]}`)
	if err != nil || len(next.Lease.Fence) < 13 || held.Lease.Fence != "1" {
		t.Fatalf("the next fence is %+v, that of the source was %s, %v", next, held.Lease.Fence, err)
	}
	// The jump is made once.
	one.Kill()
	two := Serve(t, to)
	two.Becomes("ready")
	after, err := two.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:3"}]}`)
	if err != nil || len(after.Lease.Fence) != len(next.Lease.Fence) || after.Lease.Fence <= next.Lease.Fence {
		t.Fatalf("fence %+v after %s, %v", after, next.Lease.Fence, err)
	}

	// From the engine into a directory, and into another journal of the engine.
	back := filepath.Join(t.TempDir(), "back")
	if code, said := run(t, "admin", "migrate", "--from", to, "--to", back); code != 4 {
		t.Fatalf("migrate from a server that runs: exit code %d: %s", code, said)
	}
	if a, err := two.call(ctx, http.MethodGet, "/v1/keys/account:1", ""); err != nil || a.status != 200 {
		t.Fatalf("the server after that: %+v, %v", a, err)
	}
	two.signal(syscall.SIGTERM)
	if err := two.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	two.cmd = nil
	if code, said := run(t, "admin", "migrate", "--from", to, "--to", back); code != 0 {
		t.Fatalf("migrate to a directory: exit code %d: %s", code, said)
	}
	if code, said := run(t, "admin", "migrate", "--from", to, "--to", e.URL("again")); code != 0 {
		t.Fatalf("migrate to another journal: exit code %d: %s", code, said)
	}
	if code, said := run(t, "admin", "migrate", "--from", e.URL("none"), "--to", back+"2"); code != 1 {
		t.Fatalf("migrate from a journal that does not exist: exit code %d: %s", code, said)
	}
	for _, flags := range [][]string{{"--data-dir", back}, {"--journal", e.URL("again")}} {
		ports := FreePorts(t, 2)
		s := ServeAt(t, nil, ports[0], ports[1], flags...)
		s.Becomes("ready")
		renewed, err := s.call(ctx, http.MethodPost, "/v1/leases/"+held.Lease.ID+"/renew", "{}")
		if err != nil || renewed.status != 200 {
			t.Fatalf("the lease over %s: %+v, %v", flags, renewed, err)
		}
		last, err := s.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:4"}]}`)
		if err != nil || last.Lease.Fence <= after.Lease.Fence {
			t.Fatalf("fence %+v after %s, %v", last, after.Lease.Fence, err)
		}
	}
}
