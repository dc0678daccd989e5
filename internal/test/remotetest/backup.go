package remotetest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// Backup restores the backup of a server into another journal of the engine: the lease is
// held, the next fence is far above, and a journal that is there is not touched.
func Backup(t *testing.T, e Engine) {
	file := filepath.Join(t.TempDir(), "backup")
	s := Serve(t, e.URL("original"))
	s.Becomes("ready")
	ctx := t.Context()
	held, err := s.call(
		ctx, http.MethodPost, "/v1/leases", `{"agent":"holder","ttl_ms":600000,"claims":[{"key":"account:1"}]}`,
	)
	if err != nil || held.status != 200 {
		t.Fatalf("acquire: %+v, %v", held, err)
	}
	if code, said := run(t, "--url", "http://"+s.http, "admin", "backup", "--to", file); code != 0 {
		t.Fatalf("backup: exit code %d: %s", code, said)
	}
	if code, said := run(t, "admin", "backup", "verify", file); code != 0 {
		t.Fatalf("verify: exit code %d: %s", code, said)
	}
	ports := busy.Ports(t, 2)
	code, said := run(
		t, "serve", "--journal", e.URL("original"), "--http", ports[0], "--grpc", ports[1], "--restore", file,
	)
	if code != 2 || !strings.Contains(said, "nothing of it was changed: leave out --restore") {
		t.Fatalf("over a journal: exit code %d: %s", code, said)
	}

	copied := Serve(t, e.URL("copy"), "--restore", file)
	copied.Becomes("ready")
	renewed, err := copied.call(ctx, http.MethodPost, "/v1/leases/"+held.Lease.ID+"/renew", "{}")
	if err != nil || renewed.status != 200 {
		t.Fatalf("the lease after the restore: %+v, %v", renewed, err)
	}
	next, err := copied.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:2"}]}`)
	if err != nil || len(next.Lease.Fence) < 13 {
		t.Fatalf("the next fence is %+v, %v", next, err)
	}
	// The original goes on, and knows nothing of the copy's leases.
	own, err := s.call(ctx, http.MethodPost, "/v1/leases", `{"claims":[{"key":"account:2"}]}`)
	if err != nil || own.status != 200 || len(own.Lease.Fence) >= 13 {
		t.Fatalf("the original grants %+v, %v", own, err)
	}
}

// BackupOfShards restores the backup of a journal with several shards, between which namespaces have moved: each
// has its lease, with a higher fence for the next one, and a backup that lacks a shard is refused.
func BackupOfShards(t *testing.T, e Engine) {
	const namespaces = 12
	dir := filepath.Join(t.TempDir(), "backup")
	s := Serve(t, e.URL("original"), "--shards", "4", "--store", "fast="+e.URL("fast"))
	s.Becomes("ready")
	ctx := t.Context()
	if code, said := run(t, "--url", "http://"+s.http, "admin", "shards", "add", "fast", "--count", "2"); code != 0 {
		t.Fatalf("more shards: exit code %d: %s", code, said)
	}
	held := make([]answer, namespaces)
	for i := range held {
		var err error
		held[i], err = s.as(namespace(i)).call(
			ctx, http.MethodPost, "/v1/leases", `{"agent":"holder","ttl_ms":600000,"claims":[{"key":"account:1"}]}`,
		)
		if err != nil || held[i].status != 200 {
			t.Fatalf("acquire: %+v, %v", held[i], err)
		}
	}
	busy.Wait(t, "the shards in the other store", func() bool {
		_, text, err := s.fetch(ctx, http.MethodGet, "/v1/shards", "")
		return err == nil && strings.Count(string(text), `"here":true,"store":"fast"`) == 2
	})
	for shard := range 6 { // some are there already
		name := namespace(shard)
		code, said := run(t, "--url", "http://"+s.http, "admin", "move", name, "--to", fmt.Sprint(shard))
		if code != 0 || !strings.Contains(said, fmt.Sprintf("namespace %s is in shard %d", name, shard)) {
			t.Fatalf("move: exit code %d: %s", code, said)
		}
	}
	busy.Wait(t, "the end of all moves", func() bool {
		_, text, err := s.fetch(ctx, http.MethodGet, "/v1/shards?now=true", "")
		return err == nil && !strings.Contains(string(text), `"moves"`)
	})
	if code, said := run(t, "--url", "http://"+s.http, "admin", "backup", "--to", "-"); code != 2 ||
		!strings.Contains(said, "has 6 shards") {
		t.Fatalf("backup to one file: exit code %d: %s", code, said)
	}
	if a := s.get("/v1/admin/backup"); a.status != 400 || a.Code != "invalid_request" {
		t.Fatalf("backup without a shard: %+v", a)
	}
	if code, said := run(t, "--url", "http://"+s.http, "admin", "backup", "--to", dir); code != 0 {
		t.Fatalf("backup: exit code %d: %s", code, said)
	}
	if code, said := run(t, "admin", "backup", "verify", dir); code != 0 || strings.Count(said, "nothing is wrong") != 6 {
		t.Fatalf("verify: exit code %d: %s", code, said)
	}

	copied := Serve(t, e.URL("copy"), "--restore", dir, "--store", "fast="+e.URL("fastcopy"))
	copied.Becomes("ready")
	copied.keeps(t, held, "account:2")

	if err := os.Remove(filepath.Join(dir, "shard-0002.backup")); err != nil {
		t.Fatal(err)
	}
	ports := busy.Ports(t, 2)
	code, said := run(t, "serve", "--journal", e.URL("third"), "--http", ports[0], "--grpc", ports[1], "--restore", dir)
	if code != 2 || !strings.Contains(said, "shard-0002.backup") {
		t.Fatalf("a backup without a shard: exit code %d: %s", code, said)
	}
}

// keeps checks that a server over another journal has the lease of each namespace, and that the fence of a free key
// has jumped.
func (s *Instance) keeps(t *testing.T, held []answer, free string) {
	t.Helper()
	for i := range held {
		c := s.as(namespace(i))
		renewed, err := c.call(t.Context(), http.MethodPost, "/v1/leases/"+held[i].Lease.ID+"/renew", "{}")
		if err != nil || renewed.status != 200 || renewed.Lease.Fence != held[i].Lease.Fence {
			t.Fatalf("the lease of namespace %d in the other journal: %+v, %v", i, renewed, err)
		}
		next, err := c.call(t.Context(), http.MethodPost, "/v1/leases", fmt.Sprintf(`{"claims":[{"key":%q}]}`, free))
		if err != nil || len(next.Lease.Fence) < 13 {
			t.Fatalf("the next fence of namespace %d is %+v, %v", i, next, err)
		}
	}
}
