package crashtest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// mounted returns a wrapper that mounts a file system in memory for the server at dir, with
// these options. It needs no privileges.
func mounted(t *testing.T, dir, options string) []string {
	t.Helper()
	tools.Need(t, "unshare", "mount")
	return []string{
		"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
		fmt.Sprintf(`mount -t tmpfs -o %s none '%s' && exec "$0" "$@"`, options, dir),
	}
}

// A disk that is full of an obsolete journal has room again by itself, without a restart or an
// operator.
func TestFullDiskFreesItself(t *testing.T) {
	dir := t.TempDir()
	server := launchtest.Start(t, launch.Config{
		DataDir: dir, Wrap: mounted(t, dir, "size=2m"),
		Args: quietly("--segment-bytes", "262144", "--keep-bytes", "-1"),
	})
	c := newRegular(t, server.HTTP)
	acquire := func(key string) answer {
		t.Helper()
		a, err := c.do(t.Context(), call{method: http.MethodPost, path: "/v1/leases", body: map[string]any{
			"ttl_ms": time.Hour.Milliseconds(), "claims": []any{map[string]any{"key": key}},
			"purpose": strings.Repeat("fill the disk ", 20),
		}})
		if err != nil {
			t.Fatalf("%v\n%s", err, server.Log())
		}
		if a.Outcome != "granted" && a.Code != interlock.CodeNoSpace {
			t.Fatal(a)
		}
		return a
	}
	release := func(id string) {
		t.Helper()
		if a, err := c.do(
			t.Context(), call{method: http.MethodPost, path: "/v1/leases/" + id + "/release", body: map[string]any{}},
		); err != nil ||
			a.Status != http.StatusOK {
			t.Fatalf("release on a full disk: %v %s\n%s", err, a, server.Log())
		}
	}
	const held, cycles = 200, 6_000 // which write several times what the disk has
	var ids []string
	for i, since := 0, time.Now(); i < cycles; {
		a := acquire(fmt.Sprintf("account/%d", i%1000))
		if a.Outcome == "granted" {
			i, since = i+1, time.Now()
			ids = append(ids, a.Lease.ID)
		} else if time.Since(since) > busy.Patience() {
			t.Fatalf("still no space after %d cycles, with %d leases held:\n%s", i, len(ids), server.Log())
		}
		if len(ids) > held || a.Outcome != "granted" && len(ids) > 0 {
			release(ids[0])
			ids = ids[1:]
		}
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A directory that cannot be written to is a disk that failed, not a mistake of the caller.
func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	_, err := launchtest.TryStart(t, launch.Config{DataDir: dir, Wrap: mounted(t, dir, "ro")})
	var exit *launch.ExitError
	if !errors.As(err, &exit) || exit.Code != exitDisk || !strings.Contains(exit.Log, "read-only") {
		t.Errorf("%v, want exit code %d", err, exitDisk)
	}
}
