package pgjournal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
)

// However many shards there are, they share a bounded number of connections, and wait for their turn.
func TestManyShardsShareConnections(t *testing.T) {
	server := postgrestest.Start(t)
	p, err := newPool(server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var used []*pgconn.PgConn
	for range mostOpen {
		p.share()
		c, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, c)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.take(gone)
	if _, connected := errors.AsType[*pgconn.ConnectError](err); connected || !errors.Is(err, context.Canceled) {
		t.Errorf("one more did not wait for its turn: error %v", err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := p.query(t.Context(), "SELECT 1", nil)
		got <- err
	}()
	for _, c := range used {
		p.give(c, nil)
	}
	if err := <-got; err != nil {
		t.Errorf("the one that waited: %v", err)
	}
	const clients = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
	rows, err := p.query(t.Context(), clients, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(mostOpen); rows[0].text(0) != want {
		t.Errorf("%s connections, want %s", rows[0].text(0), want)
	}
	// A connection that cannot be made leaves its turn to another one.
	p.config.Host = t.TempDir()
	p.drop()
	for range mostOpen + 1 {
		if _, err := p.take(t.Context()); err == nil || errors.Is(err, context.Canceled) {
			t.Fatalf("without a server: error %v", err)
		}
	}
}
