package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

const bytesFile = "testdata/bytes.txt"

// TestBytes compares the fingerprint of each command and the bytes of each stored value, with each
// field set alone, to those in bytesFile. These never change; -update only adds those of new fields.
func TestBytes(t *testing.T) {
	text, err := os.ReadFile(bytesFile)
	if err != nil {
		t.Fatal(err)
	}
	known, seen := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		path, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[path] = value
	}
	compare := func(path, got string) {
		seen[path] = true
		want, ok := known[path]
		if !ok && *update {
			known[path], text = got, fmt.Appendln(text, path, got)
		} else if got != want {
			t.Errorf("%s is written as %s, want %q: see %s", path, got, want, bytesFile)
		}
	}
	for _, cmd := range engine.Repeatables {
		typ := reflect.TypeOf(cmd).Elem()
		eachAlone(typ.Name(), typ, func(path string, x any) {
			compare(path, fmt.Sprintf("%016x", engine.Fingerprint(x.(engine.Command))))
		})
	}
	for _, c := range storedValues {
		eachAlone("stored."+c.typ.Name(), c.typ, func(path string, x any) {
			b := c.write(x)
			compare(path, fmt.Sprintf("%x", b))
			if again, err := c.read(b); err != nil || !bytes.Equal(c.write(again), b) {
				t.Errorf("%s: %x is read as %+v, %v", path, b, again, err)
			}
		})
	}
	for path := range known {
		if !seen[path] {
			t.Errorf("%s of %s is not written any more", path, bytesFile)
		}
	}
	if *update {
		if err := os.WriteFile(bytesFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// eachAlone calls visit with a pointer to a value of the type for each of its fields, which alone is
// set.
func eachAlone(name string, typ reflect.Type, visit func(path string, x any)) {
	whole := func(root reflect.Value) reflect.Value { return root }
	eachField(name, "", typ, func(reflect.Value) {}, whole, func(path, _ string, base, change func(reflect.Value)) {
		x := reflect.New(typ)
		base(x.Elem())
		change(x.Elem())
		visit(path, x.Interface())
	})
}

// storedValue is the codec of a value of an event.
type storedValue struct {
	typ   reflect.Type
	write func(x any) []byte
	read  func(b []byte) (any, error)
}

func storedBy[T any](write func([]byte, *T) []byte, read func([]byte) (T, error)) storedValue {
	return storedValue{
		reflect.TypeFor[T](),
		func(x any) []byte { return write(nil, x.(*T)) },
		func(b []byte) (any, error) {
			x, err := read(b)
			return &x, err
		},
	}
}

var storedValues = []storedValue{
	storedBy(record.AppendPattern, record.DecodePattern),
	storedBy(func(b []byte, q *interlock.TaskQueue) []byte {
		q.Name = cmp.Or(q.Name, "q")
		return record.AppendQueue(b, q)
	}, record.DecodeQueue),
	storedBy(record.AppendSettings, func(b []byte) (interlock.Settings, error) {
		s, _, err := record.DecodeSettings(b)
		return s, err
	}),
	storedBy(func(b []byte, a *record.Approval) []byte {
		return record.AppendApproval(b, a, 9)
	}, func(b []byte) (record.Approval, error) {
		a, err := record.DecodeApproval(b, 9)
		return *a, err
	}),
	storedBy(record.AppendRun, record.DecodeRun),
	storedBy(record.AppendLogText, record.DecodeLogText),
	storedBy(appendTask, decodeTask),
}

// appendTask appends an entry with the event of a task. It adds what each task has.
func appendTask(b []byte, s *record.Task) []byte {
	s.TaskExtras = cmp.Or(s.TaskExtras, record.NoExtras)
	s.Address = cmp.Or(s.Address, &record.Address{})
	s.Queue = cmp.Or(s.Queue, "q")
	if s.Message && s.Claims == nil {
		s.Claims = make([]interlock.Claim, 1)
	}
	for i := range s.Claims {
		s.Claims[i].Mode = cmp.Or(s.Claims[i].Mode, interlock.Permits)
	}
	ev := record.Event{Kind: record.TaskSubmitted, At: s.Submitted}
	s.Describe(&ev)
	return record.AppendEvent(record.AppendHead(b, ev.At), &ev)
}

func decodeTask(b []byte) (s record.Task, err error) {
	err = record.DecodeEntry(b, func(ev *record.Event) error {
		x, err := record.DecodeTask(ev)
		s = *x
		return err
	})
	return s, err
}
