package crashtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// The exit codes of serve, as the HTTP API's page names them.
const (
	exitUsage   = 2
	exitDamaged = 3
	exitLocked  = 4
	exitNewer   = 5
	exitDisk    = 70
)

// strace is a wrapper that makes system calls of the server fail, or kills it at them. -D keeps the
// server's process id and exit code.
func strace(t *testing.T, inject string) []string {
	t.Helper()
	tools.Need(t, "strace")
	calls, _, _ := strings.Cut(inject, ":")
	wrap := []string{
		"strace", "-D", "-f", "-qq", "-o", filepath.Join(t.TempDir(), "strace.log"),
		"-e", "trace=" + calls, "-e", "inject=" + inject,
	}
	// The filter leaves all other calls at full speed, but the kernel ignores a signal that is
	// injected where the filter stops a call.
	if !strings.Contains(inject, ":signal=") {
		wrap = append(wrap, "--seccomp-bpf")
	}
	return wrap
}

// prepared is a data directory with leases and a line in it, and the crew that
// knows them. Its server has stopped.
func prepared(t *testing.T, seed uint64) (dir string, crew *crew) {
	t.Helper()
	dir = t.TempDir()
	crew = newCrew(t, seed, 5)
	server := launchtest.Start(t, launch.Config{DataDir: dir})
	crew.settle(t.Context(), server)
	crew.work(t.Context(), server, 100, func() {
		if err := server.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return dir, crew
}

// A failed sync ends the server: the kernel may have dropped the pages, so going on
// would acknowledge what is not on the disk.
func TestFailingSync(t *testing.T) {
	tools.Need(t, "strace")
	dir, crew := prepared(t, 3)
	// strace counts for each thread by itself, so the failure comes when one of them
	// has made so many syncs.
	underLoad := 0
	for _, when := range []int{1, 2, 3, 5, 8, 13, 21, 34, 55, 89} {
		t.Run(fmt.Sprintf("from number %d on", when), func(t *testing.T) {
			crew.t, crew.site.t = t, t
			server, err := launchtest.TryStart(t, launch.Config{
				DataDir: dir, Wrap: strace(t, fmt.Sprintf("fdatasync,fsync:error=EIO:when=%d+", when)),
			})
			var exit *launch.ExitError
			switch {
			case errors.As(err, &exit):
				if exit.Code != exitDisk {
					t.Fatalf("exit code %d, want %d:\n%s", exit.Code, exitDisk, exit.Log)
				}
			case err != nil:
				t.Fatal(err)
			default:
				underLoad++
				crew.site.connect(server.HTTP)
				crew.work(t.Context(), server, 1<<20, func() { t.Error("the disk never failed") })
				if code := server.ExitCode(); code != exitDisk {
					t.Fatalf("exit code %d, want %d:\n%s", code, exitDisk, server.Log())
				}
			}
			after := launchtest.Start(t, launch.Config{DataDir: dir})
			crew.settle(t.Context(), after)
			if err := after.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if underLoad < 3 {
		t.Errorf("the disk failed under load %d times only, else at the start", underLoad)
	}
	t.Attr("count.faults.eio", fmt.Sprint(underLoad))
	t.Logf("the disk failed under load %d times", underLoad)
}

// On a full disk nothing new is admitted, and leases can be released.
func TestFullDisk(t *testing.T) {
	tools.Need(t, "strace")
	ctx := t.Context()
	dir, crew := prepared(t, 4)
	// Without its spare segment the server needs space at once, and gets none.
	if err := os.Remove(filepath.Join(dir, "spare")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	server := launchtest.Start(t, launch.Config{DataDir: dir, Wrap: strace(t, "fallocate:error=ENOSPC"), Args: tiny})
	crew.site.connect(server.HTTP)

	refused := false
	for i := 0; !refused; i++ {
		a, err := crew.site.do(ctx, call{method: http.MethodPost, path: "/v1/leases", body: map[string]any{
			"agent": "newcomer", "ttl_ms": ttlMS, "claims": []any{map[string]any{"key": fmt.Sprintf("new/%d", i)}},
		}})
		switch {
		case err != nil:
			t.Fatalf("%v\n%s", err, server.Log())
		case a.Code == interlock.CodeNoSpace:
			refused = true
			if !strings.Contains(a.Detail, "releases still work") {
				t.Errorf("the refusal does not say what to do: %s", a)
			}
		case a.Outcome != "granted":
			t.Fatal(a)
		case i == 100_000:
			t.Fatal("never refused")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(crew.ledger.held)) {
		a, err := crew.site.do(ctx, call{
			method: http.MethodPost, path: "/v1/leases/" + id + "/release",
			body: map[string]any{"outcome": "done", "note": "no space left"},
		})
		if err != nil || a.Status != http.StatusOK {
			t.Fatalf("release on a full disk: %v %s", err, a)
		}
		crew.ledger.released(id, "no space left")
	}
	server.Kill()

	// With space again, all of it is there, and newcomers are welcome.
	server = launchtest.Start(t, launch.Config{DataDir: dir})
	crew.site.connect(server.HTTP)
	crew.ledger.check(ctx, t, crew.site)
	a, err := crew.site.do(
		ctx,
		call{
			method: http.MethodPost, path: "/v1/leases",
			body: map[string]any{"claims": []any{map[string]any{"key": "new/again"}}},
		},
	)
	if err != nil || a.Outcome != "granted" {
		t.Errorf("with space again: %v %s", err, a)
	}
}

// Each of these starts is refused with an exit code of its own, a sentence with the next step,
// and without a change to the journal.
func TestRefusedStarts(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, dir string)
		code  int
		says  string
	}{
		{"a second server", func(t *testing.T, dir string) {
			launchtest.Start(t, launch.Config{DataDir: dir})
		}, exitLocked, "stop that server or choose another directory"},
		{"a newer journal", raiseVersion, exitNewer, "newer"},
		{"a damaged journal", flipByte, exitDamaged, "damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := prepared(t, 5)
			tt.spoil(t, dir)
			alone := tt.code != exitLocked
			var before map[string][]byte
			if alone {
				before = contents(t, dir)
			}
			_, err := launchtest.TryStart(t, launch.Config{DataDir: dir})
			var exit *launch.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("error %v, want a refusal", err)
			}
			if exit.Code != tt.code || !strings.Contains(exit.Log, tt.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", exit.Code, tt.code, tt.says, exit.Log)
			}
			if alone && !maps.EqualFunc(before, contents(t, dir), bytes.Equal) {
				t.Error("the refused start has changed the directory")
			}
		})
	}
}

// The server that holds the journal does not notice the one that is refused.
func TestSecondServerDoesNoHarm(t *testing.T) {
	dir := t.TempDir()
	crew := newCrew(t, 6, 5)
	first := launchtest.Start(t, launch.Config{DataDir: dir})
	crew.settle(t.Context(), first)
	crew.work(t.Context(), first, 200, func() {
		_, err := launchtest.TryStart(t, launch.Config{DataDir: dir})
		var exit *launch.ExitError
		if !errors.As(err, &exit) || exit.Code != exitLocked {
			t.Errorf("the second server: %v, want exit code %d", err, exitLocked)
		}
		if err := first.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	crew.settle(t.Context(), launchtest.Start(t, launch.Config{DataDir: dir}))
}

// lastSegment is the log file that was written last.
func lastSegment(t *testing.T, dir string) string {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segment in %s: %v", dir, err)
	}
	return slices.Max(segments)
}

// raiseVersion makes a segment look like one of a later version; docs/journal.md
// has the format of the first 16 bytes.
func raiseVersion(t *testing.T, dir string) {
	t.Helper()
	edit(t, lastSegment(t, dir), func(b []byte) {
		binary.LittleEndian.PutUint32(b[8:], 1000)
		binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], crc32.MakeTable(crc32.Castagnoli)))
	})
}

// flipByte changes one byte in the middle of the written part.
func flipByte(t *testing.T, dir string) {
	t.Helper()
	edit(t, lastSegment(t, dir), func(b []byte) {
		b[len(bytes.TrimRight(b, "\x00"))/2] ^= 0x40
	})
}

func edit(t *testing.T, name string, change func([]byte)) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	change(b)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents is every file of a directory by name, without the zeros at its end.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = bytes.Clone(bytes.TrimRight(b, "\x00"))
	}
	return files
}
