package acquire

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// A lease that was granted although its answer was lost is found again and released.
func TestUndo(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	target := &cli.Target{URL: "http://" + server.HTTP}
	if err := target.Complete(); err != nil {
		t.Fatal(err)
	}
	c := cli.NewAPI(target)
	ask := func(id string) cli.Request {
		return cli.Request{
			Method: http.MethodPost, Path: "/v1/leases", ID: id,
			Body: &api.AcquireRequest{Claims: []api.ClaimRequest{{Key: "k"}}, OnConflict: "wait"},
		}
	}
	if _, _, err := c.Do(t.Context(), ask("first")); err != nil {
		t.Fatal(err)
	}
	status, _, err := c.Do(t.Context(), ask("second"))
	if err != nil || status != http.StatusAccepted {
		t.Fatal(status, err)
	}
	look := func() (k api.KeyView) {
		t.Helper()
		_, answer, err := c.Do(t.Context(), cli.Request{Method: http.MethodGet, Path: cli.KeyPath("k")})
		if err == nil {
			err = json.Unmarshal(answer, &k)
		}
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := look(); k.Length != 1 || len(k.Holders) != 1 {
		t.Fatalf("before, %d stand in line and %d hold the key", k.Length, len(k.Holders))
	}
	Undo(c, ask("second"), &view.LeaseAnswer{})
	if k := look(); k.Length != 0 || len(k.Holders) != 1 {
		t.Errorf("after the first call %d stand in line and %d hold the key", k.Length, len(k.Holders))
	}
	Undo(c, ask("first"), &view.LeaseAnswer{})
	if k := look(); len(k.Holders) != 0 {
		t.Errorf("after the second call %d hold the key", len(k.Holders))
	}
}
