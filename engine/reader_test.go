package engine_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// TestReader: what a Reader makes of an entry, and what CheckEntry says of it, is what
// DecodeEntry makes and says, also of one that is cut short or changed.
func TestReader(t *testing.T) {
	var r engine.Reader
	same := func(err, want error) bool {
		return err == want || err != nil && want != nil && err.Error() == want.Error()
	}
	compare := func(entry []byte) {
		t.Helper()
		var want []engine.Event
		wantErr := engine.DecodeEntry(entry, func(ev *engine.Event) error {
			want = append(want, *ev)
			return nil
		})
		got, err := r.Append(nil, entry)
		if !same(err, wantErr) {
			t.Fatalf("Reader: %v, DecodeEntry: %v", err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("Reader: %+v\nDecodeEntry: %+v", got, want)
		}
		if err := engine.CheckEntry(entry); !same(err, wantErr) {
			t.Fatalf("CheckEntry: %v, DecodeEntry: %v", err, wantErr)
		}
	}
	for _, dir := range goldens(t) {
		var pieces shard.Joiner
		for _, x := range readGolden(t, dir).entries {
			entry, err := pieces.Join(x)
			if err != nil {
				t.Fatal(err)
			}
			if entry == nil {
				continue
			}
			compare(entry)
			changed := bytes.Clone(entry)
			for i := range min(len(entry), 200) {
				compare(entry[:i])
				changed[i] ^= 0x55
				compare(changed)
				changed[i] ^= 0x55
			}
		}
	}
}
