package remotetest

import (
	"errors"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/shard"
)

// run runs the program to its end.
func run(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	path := launchtest.Binary(t)
	cmd := exec.Command(path, args...)
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// Place is where a journal is, for the program and for this process.
type Place struct {
	URL     string
	Connect func() (*remote.Store, error)
}

// MigrateAcross moves the state of several shards from one place to the next, without a directory between. Each
// journal begins with the state with which the one before ended, and a server over the last has all leases.
func MigrateAcross(t *testing.T, places ...Place) {
	const shards, namespaces = 4, 12
	s := Serve(t, places[0].URL, "--shards", strconv.Itoa(shards))
	s.Becomes("ready")
	ctx := t.Context()
	held := make([]answer, namespaces)
	for i := range held {
		var err error
		held[i], err = s.as(namespace(i)).call(
			ctx, http.MethodPost, "/v1/leases", `{"agent":"holder","ttl_ms":600000,"claims":[{"key":"account:1"}]}`,
		)
		if err != nil || held[i].status != 200 {
			t.Fatalf("acquire: %+v, %v", held[i], err)
		}
		if a, err := s.as(namespace(i)).call(
			ctx, http.MethodPost, "/v1/commits", `{"writes":[{"key":"account:2","put":{"balance":100}}]}`,
		); err != nil || a.status != 200 {
			t.Fatalf("commit: %+v, %v", a, err)
		}
	}
	drain(t, s)
	for i, to := range places[1:] {
		from := places[i]
		if code, said := run(t, "admin", "migrate", "--from", from.URL, "--to", to.URL); code != 0 {
			t.Fatalf("migrate from %s to %s: exit code %d: %s", from.URL, to.URL, code, said)
		}
		was, is := from.states(t, shards), to.states(t, shards)
		if len(was) == 0 || !maps.Equal(was, is) {
			t.Errorf("the states of %s are %x, and those of %s are %x", from.URL, was, to.URL, is)
		}
	}
	last := Serve(t, places[len(places)-1].URL)
	last.Becomes("ready")
	last.keeps(t, held, "account:3")
}

// states returns the hashes of the states of all shards that have one. No server is there.
func (p *Place) states(t *testing.T, shards int) map[int][32]byte {
	t.Helper()
	store, err := p.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all := map[int][32]byte{}
	for n := range shards {
		empty, err := store.Shard(n).Empty(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if empty {
			continue
		}
		j, err := store.Shard(n).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state, err := shard.ReadState(t.Context(), j)
		if err = errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		all[n] = state.Hash()
	}
	return all
}

// Migrate moves a stopped server's state to the engine and back: the lease is held, the next fence is far above,
// and neither a running server nor an existing journal is touched.
func Migrate(t *testing.T, e Engine) {
	dir, to := t.TempDir(), e.URL("moved")
	ports := busy.Ports(t, 2)
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
		ports := busy.Ports(t, 2)
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
