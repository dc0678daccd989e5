package filejournal

import (
	"context"
	"testing"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string]Options{
		"Small": {SegmentBytes: 4 << 10},
		"Large": {SegmentBytes: 8 << 20, ReserveBytes: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) journaltest.Open {
				dir := t.TempDir()
				return func(ctx context.Context) (journal.Journal, error) {
					j, err := Open(ctx, dir, opts)
					if err != nil {
						return nil, err // not a nil *Journal in an interface
					}
					return j, nil
				}
			})
		})
	}
}
