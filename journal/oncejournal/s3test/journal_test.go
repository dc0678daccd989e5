package s3test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/remote"
)

// stores are the two implementations.
var stores = map[string]func(testing.TB) *store{"InMemory": inMemory, "OnDisk": onDisk}

// onBoth runs a test over each.
func onBoth(t *testing.T, test func(t *testing.T, s *store)) {
	for name, start := range stores {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

func TestConformance(t *testing.T) {
	onBoth(t, func(t *testing.T, e *store) {
		var n atomic.Int64
		journaltest.Run(t, func(t *testing.T) journaltest.Open {
			s := connect(t, e.URL(fmt.Sprint(n.Add(1))))
			return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
		})
	})
}

func TestOpenTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, e *store) {
		remotetest.OpenTogether(t, func() *remote.Store { return connect(t, e.URL("a")) })
	})
}

func TestReplaced(t *testing.T) {
	onBoth(t, func(t *testing.T, e *store) {
		remotetest.Replaced(t, func() *remote.Store { return connect(t, e.URL("a")) })
	})
}

func TestShare(t *testing.T) {
	onBoth(t, func(t *testing.T, e *store) {
		remotetest.Share(t, func() *remote.Store { return connect(t, e.URL("a")) })
	})
}

func TestJournalOfFaults(t *testing.T) {
	t.Parallel()
	s := onDisk(t)
	remotetest.JournalOfFaults(t, s.addr, func(name, proxy string) *remote.Store { return connect(t, s.at(name, proxy)) })
}

// A service that ignores a condition is refused: two servers would own the journal.
func TestUnsafeStore(t *testing.T) {
	for _, header := range []string{"If-None-Match", "If-Match"} {
		t.Run(header, func(t *testing.T) {
			backend := s3mem.New()
			if err := backend.CreateBucket(bucket); err != nil {
				t.Fatal(err)
			}
			real := gofakes3.New(backend).Server()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del(header)
				real.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			e := named(strings.TrimPrefix(s.URL, "http://"))
			_, err := connect(t, e.URL("a")).Open(t.Context())
			if !errors.Is(err, remote.ErrUnsafe) || !strings.Contains(err.Error(), header) {
				t.Errorf("got %v", err)
			}
		})
	}
}
