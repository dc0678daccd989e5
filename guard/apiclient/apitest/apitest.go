package apitest

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// Serve starts a server that ends with the test. Its URL is that of the HTTP API.
func Serve(t testing.TB) *httptest.Server {
	t.Helper()
	j, err := (&memjournal.Store{}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.Open(t.Context(), shard.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Shard: s})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.HTTPHandler())
	t.Cleanup(func() {
		web.Close()
		_ = s.Close(context.Background())
	})
	return web
}
