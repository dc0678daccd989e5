package crashtest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// A directory is copied as a backup, the original continues, and then the copy is started. The
// copy cannot know which fences the original has assigned since, so it must begin above all
// possible ones.
func TestRestoredBackup(t *testing.T) {
	ctx := t.Context()
	dir, crew := prepared(t, 7)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}

	original := launchtest.Start(t, launch.Config{DataDir: dir})
	crew.settle(ctx, original)
	crew.work(ctx, original, 300, original.Kill)
	highest := crew.ledger.fence()

	for range 2 { // the second time it is an original itself
		copied := launchtest.Start(t, launch.Config{DataDir: backup})
		crew.site.connect(copied.HTTP)
		a, err := crew.site.do(ctx, call{
			method: http.MethodPost, path: "/v1/leases",
			body: map[string]any{"claims": []any{map[string]any{"key": "restored"}}},
		})
		if err != nil || a.Outcome != "granted" {
			t.Fatalf("%v %s", err, a)
		}
		if a.Lease.Fence <= highest {
			t.Errorf("the copy gave out fence %s, the original had come to %s", a.Lease.Fence, highest)
		}
		highest = a.Lease.Fence
		if _, err := crew.site.do(
			ctx, call{method: http.MethodPost, path: "/v1/leases/" + a.Lease.ID + "/release"},
		); err != nil {
			t.Fatal(err)
		}
		if err := copied.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
