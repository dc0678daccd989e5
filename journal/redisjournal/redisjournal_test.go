package redisjournal_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/redisjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// connect makes a store that is closed at the end of the test.
func connect(t testing.TB, at redisjournal.Place) *remote.Store {
	t.Helper()
	s, err := redisjournal.Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// kinds runs a test with Redis and with Valkey.
func kinds(t *testing.T, test func(*testing.T, redisserver.Kind)) {
	for _, k := range redisserver.Kinds {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

func TestConformance(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		server := redisserver.Start(t, k, "--appendonly", "yes") // which syncs every second
		at := place(t, server.URL("j"))
		at.AllowLoss = true
		var journals atomic.Int64
		journaltest.Run(t, func(t *testing.T) journaltest.Open {
			at := at
			at.Name = fmt.Sprint("j", journals.Add(1))
			s := connect(t, at)
			return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
		})
	})
}
