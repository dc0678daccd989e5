package etcdtest

import (
	"net/http"
	"os/exec"
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

// A stopped server's state continues in etcd: the lease is held, the next fence is far above,
// and neither a running server nor an existing journal is touched.
func TestMigrate(t *testing.T) {
	c := startCluster(t)
	dir, to := t.TempDir(), c.url("moved")
	ports := freePorts(t, 2)
	s := serveAt(t, nil, ports[0], ports[1], "--data-dir", dir)
	s.becomes("ready")
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
	if code, said := run(t, "admin", "migrate", "--from", dir+"/none", "--to", c.url("other")); code != 1 {
		t.Fatalf("migrate from nothing: exit code %d: %s", code, said)
	}
	one := serve(t, to)
	one.becomes("ready")
	renewed, err := one.call(ctx, http.MethodPost, "/v1/leases/"+held.Lease.ID+"/renew", "{}")
	if err != nil || renewed.status != 200 {
		t.Fatalf("the lease after the move: %+v, %v", renewed, err)
	}
	next, err := one.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:2"}]}`)
	if err != nil || len(next.Lease.Fence) < 13 || held.Lease.Fence != "1" {
		t.Fatalf("the next fence is %+v, that of the source was %s, %v", next, held.Lease.Fence, err)
	}
	// The jump is made once.
	one.kill()
	two := serve(t, to)
	two.becomes("ready")
	after, err := two.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:3"}]}`)
	if err != nil || len(after.Lease.Fence) != len(next.Lease.Fence) || after.Lease.Fence <= next.Lease.Fence {
		t.Fatalf("fence %+v after %s, %v", after, next.Lease.Fence, err)
	}
}
