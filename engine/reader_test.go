package engine_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// TestReader: a Reader's result for an entry, and CheckEntry's, are those of DecodeEntry, also
// for an entry that is truncated or changed.
func TestReader(t *testing.T) {
	t.Parallel()
	var r record.Reader
	same := func(err, want error) bool {
		return err == want || err != nil && want != nil && err.Error() == want.Error()
	}
	compare := func(entry []byte) {
		t.Helper()
		var want []record.Event
		wantErr := record.DecodeEntry(entry, func(ev *record.Event) error {
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
		if err := record.CheckEntry(entry); !same(err, wantErr) {
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

// TestDecodeEntryOf: of an entry with events of several namespaces, where one name is a prefix
// of another, each gets its own and those of the whole shard, and an unreadable entry is
// refused to all.
func TestDecodeEntryOf(t *testing.T) {
	const head = 9
	e := engine.New()
	var out engine.Output
	e.Step(&engine.Recover{Head: engine.Head{At: 1}, Epoch: 1}, &out)
	names := []interlock.Namespace{"acme", "acme2", "acm"}
	for i, name := range names {
		from := len(out.Entry)
		e.Step(&engine.OpenSession{
			Head: engine.Head{Namespace: name, At: 2}, ID: [16]byte{byte(i + 1)}, Agent: string(name), TTL: interlock.DefaultTTL,
		}, &out)
		out.Entry = append(out.Entry[:from], out.Entry[from+head:]...)
	}
	for _, name := range append(names, "acme22", "") {
		var want, got []record.Event
		keep := func(list *[]record.Event) func(*record.Event) error {
			return func(ev *record.Event) error {
				*list = append(*list, *ev)
				return nil
			}
		}
		if err := record.DecodeEntryOf(out.Entry, name, keep(&got)); err != nil {
			t.Fatal(err)
		}
		if err := record.DecodeEntry(out.Entry, keep(&want)); err != nil || len(want) != 1+len(names) {
			t.Fatal(err, len(want))
		}
		want = slices.DeleteFunc(want, func(ev record.Event) bool { return ev.Namespace != "" && ev.Namespace != name })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q gets %+v\nwant %+v", name, got, want)
		}
		for i := range len(out.Entry) {
			all := record.CheckEntry(out.Entry[:i])
			if err := record.DecodeEntryOf(out.Entry[:i], name, keep(&got)); (err == nil) != (all == nil) {
				t.Errorf("%q, cut after %d bytes: %v, want %v", name, i, err, all)
			}
		}
	}
}
