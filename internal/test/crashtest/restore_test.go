package crashtest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// A server that is killed at any step of its restore is started again with the same command. If the
// restore was complete, that is refused, and the server starts without it. Nothing of the backup is
// lost either way.
func TestKillInRestore(t *testing.T) {
	ctx := t.Context()
	dir, crew := prepared(t, 8)
	original := launchtest.Start(t, launch.Config{DataDir: dir})
	file := filepath.Join(t.TempDir(), "backup")
	if out, err := exec.CommandContext(
		ctx, launchtest.Binary(t), "--url", "http://"+original.HTTP, "admin", "backup", "--to", file,
	).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := original.Stop(ctx); err != nil {
		t.Fatal(err)
	}

	restore := []string{"--restore", file}
	var again, complete int
	// In their order: the mark of a restore is written, synced, and its name synced; the segment
	// gets its space; the mark is removed; the restored server listens.
	for _, at := range []string{"pwrite64", "fdatasync", "fsync", "fallocate", "unlinkat", "bind"} {
		dir := filepath.Join(t.TempDir(), "data")
		if killed, err := launchtest.TryStart(t, launch.Config{
			DataDir: dir, Args: restore, Wrap: strace(t, at+":signal=KILL"),
		}); err == nil {
			killed.Kill()
			t.Fatalf("the server was ready without %s", at)
		}
		server, err := launchtest.TryStart(t, launch.Config{DataDir: dir, Args: restore})
		if exit, ok := errors.AsType[*launch.ExitError](err); ok {
			if exit.Code != exitUsage || !strings.Contains(exit.Log, "leave out --restore to go on") {
				t.Fatalf("killed at %s, then: %v", at, exit)
			}
			complete++
			server, err = launchtest.TryStart(t, launch.Config{DataDir: dir})
		} else {
			again++
		}
		if err != nil {
			t.Fatalf("killed at %s, then: %v", at, err)
		}
		crew.site.connect(server.HTTP)
		crew.ledger.check(ctx, t, crew.site)
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("after a kill at %s", at)
		}
	}
	if again < 4 || complete < 1 {
		t.Errorf("%d restores were repeated, and %d were complete", again, complete)
	}
}
