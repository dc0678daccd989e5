package apitest

import (
	"context"
	"net/http"
	"testing"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// API is a server in this process. Its zero value is a server that is not running.
type API struct {
	http.Handler
	Shard *shard.Shard

	store memjournal.Store
}

// Open starts the server, with what it had in its journal when it was closed.
func (a *API) Open(t testing.TB) {
	t.Helper()
	j, err := a.store.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.Shard, err = shard.Open(t.Context(), shard.Config{Journal: j}); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Shard: a.Shard})
	if err != nil {
		t.Fatal(err)
	}
	a.Handler = s.HTTPHandler()
}

// Close stops the server. The journal stays.
func (a *API) Close() { _ = a.Shard.Close(context.Background()) }
