package account

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// A document that a listing has behind the ledger is read anew: its version is the
// server's, and not something in the account.
func TestAccountDocumentIsReadAnew(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	target := &cli.Target{URL: "http://" + server.HTTP}
	if err := target.Complete(); err != nil {
		t.Fatal(err)
	}
	api := cli.NewAPI(target)
	for i, body := range []map[string]any{
		{"writes": []any{map[string]any{"key": "account:1", "put": map[string]any{"version": "7"}}}},
		{
			"writes": []any{map[string]any{"key": "account:1", "put": map[string]any{"balance": 1}}},
			"reads":  []any{map[string]any{"key": "account:1", "version": "1"}},
		},
	} {
		r := cli.Request{Method: http.MethodPost, Path: "/v1/commits", ID: cli.FreshID(), Body: body}
		if _, _, err := api.Do(t.Context(), r); err != nil {
			t.Fatalf("write %d: %v", i+1, err)
		}
	}
	k := &ledgerKeeper{api: api}
	for key, want := range map[interlock.Key]interlock.Document{
		"account:1": {Key: "account:1", Version: 2}, "account:2": {Key: "account:2", Absent: true},
	} {
		if got, err := k.document(t.Context(), key); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s is read as %+v, %v, want %+v", key, got, err, want)
		}
	}
}
