package etcdtest

import (
	"context"
	"testing"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
)

func TestConformance(t *testing.T) {
	c := startCluster(t)
	journaltest.Run(t, func(t *testing.T) journaltest.Open {
		s := c.store(c.place())
		return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
	})
}
