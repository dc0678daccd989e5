package pgjournal_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/pgjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// connect makes a store that is closed at the end of the test.
func connect(t testing.TB, at pgjournal.Place) *remote.Store {
	t.Helper()
	s, err := pgjournal.Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := postgrestest.Start(t)
	at := pgjournal.Place{DSN: server.Database(t), AllowLoss: true}
	var journals atomic.Int64
	journaltest.Run(t, func(t *testing.T) journaltest.Open {
		at := at
		at.Name = fmt.Sprint("j", journals.Add(1))
		s := connect(t, at)
		return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
	})
}
