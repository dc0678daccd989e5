package shard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
)

// Seek finds an index before all entries from a time on, and not far before the first of them, also
// among pieces.
func TestSeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const entries = 3 * seekWithin
		at := map[interlock.Index]engine.Time{}
		for i := range entries {
			<-time.After(time.Second)
			r.expect(engine.Granted, acquire(nil, fmt.Sprint("key:", i)))
			if i == entries/2 {
				if _, err := r.large(twoPieces); err != nil {
					t.Fatal(err)
				}
			}
		}
		pieces := Joiner{}
		if err := r.shard.journal.Read(t.Context(), 1, func(e journal.Entry) error {
			entry, err := pieces.Join(e)
			if err != nil || entry == nil {
				return err
			}
			return record.DecodeEntry(entry, func(ev *record.Event) error {
				at[e.Index] = ev.At
				return nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		last := r.shard.At().Index
		for index := interlock.Index(10); index <= last; index += 1017 {
			if at[index] == 0 {
				continue // a piece
			}
			from, err := r.shard.Seek(t.Context(), at[index])
			if err != nil || from > index || index-from > seekWithin {
				t.Errorf("entry %d was sought and %d found: %v", index, from, err)
			}
		}
		for _, c := range []struct {
			t    engine.Time
			want interlock.Index
		}{{1, 1}, {record.Never, last + 1}} {
			if from, err := r.shard.Seek(t.Context(), c.t); err != nil || from > c.want || c.want-from > seekWithin {
				t.Errorf("%d was sought and %d found, want %d: %v", c.t, from, c.want, err)
			}
		}
	})
}
