package firestoretest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/remote"
)

func TestConformance(t *testing.T) {
	e := begin(t)
	var n atomic.Int64
	journaltest.Run(t, func(t *testing.T) journaltest.Open {
		s := connect(t, e.URL(fmt.Sprint(n.Add(1))))
		return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
	})
}

func TestOpenTogether(t *testing.T) {
	e := begin(t)
	remotetest.OpenTogether(t, func() *remote.Store { return connect(t, e.URL("a")) })
}

func TestReplaced(t *testing.T) {
	e := begin(t)
	remotetest.Replaced(t, func() *remote.Store { return connect(t, e.URL("a")) })
}

func TestShare(t *testing.T) {
	e := begin(t)
	remotetest.Share(t, func() *remote.Store { return connect(t, e.URL("a")) })
}
