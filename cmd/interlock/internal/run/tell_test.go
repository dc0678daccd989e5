package run

import (
	"net/http"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// The loss of the lease is reported also when the command has ended by the time it is looked at.
func TestLossIsToldAfterTheEnd(t *testing.T) {
	server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
	c, err := client.Dial(
		t.Context(), client.Config{Addrs: []string{server.GRPC}, Namespace: interlock.DefaultNamespace},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	lease, err := c.Acquire(t.Context(), client.Request{Claims: []interlock.Claim{{Key: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	target := &cli.Target{URL: "http://" + server.HTTP}
	if err := target.Complete(); err != nil {
		t.Fatal(err)
	}
	_, _, err = cli.NewAPI(target).Do(t.Context(), cli.Request{
		Method: http.MethodPost, Path: "/v1/revocations", ID: cli.FreshID(),
		Body: map[string]any{"key": "k", "fence": lease.Fence().String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-lease.Context().Done()
	ended := make(chan struct{})
	close(ended)
	for range 50 { // which of two ready channels is taken is left to chance
		var told strings.Builder
		r := &invocation{a: &cli.App{Err: &told}}
		if r.watch(lease, ended); !strings.Contains(told.String(), "the lease is lost") {
			t.Fatalf("it was told %q", told.String())
		}
	}
}
