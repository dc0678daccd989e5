package account

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// kept is a server that keeps the logs of accounts.
type kept map[interlock.Key][]interlock.LogEntry

func (k kept) Log(_ context.Context, key interlock.Key, from uint64) iter.Seq2[interlock.LogEntry, error] {
	return func(yield func(interlock.LogEntry, error) bool) {
		for _, e := range k[key] {
			if e.Seq >= from && !yield(e, nil) {
				return
			}
		}
	}
}

// decide appends what is decided on a command to the log of an account.
func (k kept) decide(t *testing.T, key interlock.Key, kind Kind, amount Money) {
	t.Helper()
	log := k[key]
	state, version, seq := State{}, interlock.Version(0), uint64(1)
	if n := len(log); n > 0 {
		version, seq = log[n-1].Document.Version, log[n-1].Seq+1
		for _, e := range log {
			if e.Changed {
				var err error
				if state, err = Parse(e.Document); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	body, _ := json.Marshal(Order{Amount: amount, Memo: "late <fee>"})
	id := interlock.TaskID{byte(seq), byte(seq >> 8), key[len(key)-1]}
	cmd := read(key, id.String(), kind, body)
	cmd.By = "a"
	d := Decide(Policy{Currency: "EUR"}, state, cmd, noon.Add(time.Duration(seq)*time.Second))
	on := version
	d.Reply.On = &on
	e := interlock.LogEntry{
		Seq: seq, Message: id, Kind: string(kind), Body: body, Sender: "agent:a", State: interlock.TaskDone,
		Reply:    encode(d.Reply),
		Document: interlock.Document{Key: key, Version: version}, Changed: d.Changed,
	}
	if d.Changed {
		e.Document.Version++
		e.Document.Body = d.State.encode()
	}
	k[key] = append(log, e)
}

// drop forgets the oldest entries of a log, but for so many.
func (k kept) drop(key interlock.Key, keep int) { k[key] = k[key][len(k[key])-keep:] }

// ledgerFile is a ledger in a file, which can be closed and opened again.
type ledgerFile struct {
	t    *testing.T
	name string
	*Ledger
}

func newLedgerFile(t *testing.T) *ledgerFile {
	f := &ledgerFile{t: t, name: filepath.Join(t.TempDir(), "ledger.ndjson")}
	f.open()
	return f
}

func (f *ledgerFile) open() {
	f.t.Helper()
	file, err := os.OpenFile(f.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { file.Close() })
	if f.Ledger, err = OpenLedger(file); err != nil {
		f.t.Fatal(err)
	}
}

func (f *ledgerFile) record(from Source, keys ...interlock.Key) {
	f.t.Helper()
	for _, key := range keys {
		if err := f.Record(f.t.Context(), from, key); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *ledgerFile) text() []byte {
	f.t.Helper()
	text, err := os.ReadFile(f.name)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

// wants checks the ledger, and which entries it has.
func (f *ledgerFile) wants(want string) {
	f.t.Helper()
	var have []string
	r := NewReader()
	if err := r.Read(bytes.NewReader(f.text())); err != nil {
		f.t.Fatalf("%v\n%s", err, f.text())
	}
	for line := range bytes.Lines(f.text()) {
		var l Line
		if err := json.Unmarshal(line, &l); err != nil {
			f.t.Fatal(err)
		}
		have = append(have, fmt.Sprintf("%s/%d", strings.TrimPrefix(string(l.Account), "account:"), l.Entry))
	}
	if got := strings.Join(have, " "); got != want {
		f.t.Errorf("the ledger has %s, wanted %s", got, want)
	}
}

func TestLedgerGoesOn(t *testing.T) {
	k, f := kept{}, newLedgerFile(t)
	k.decide(t, "account:1", Credit, 100)
	k.decide(t, "account:1", Debit, 30)
	f.record(k, "account:1", "account:1")
	k.decide(t, "account:2", Debit, 5)
	k.decide(t, "account:1", Debit, 300)
	f.record(k, "account:2")
	f.open()
	f.record(k, "account:1", "account:2")
	f.wants("1/1 1/2 2/1 1/3")

	var l Line
	lines := bytes.Split(f.text(), []byte("\n"))
	if err := json.Unmarshal(lines[1], &l); err != nil {
		t.Fatal(err)
	}
	if l.Kind != Debit || l.Outcome != "done" || l.From != "account:1" || l.To != "" || l.Amount != 30 ||
		l.Change != -30 || l.Balance != 70 ||
		l.Currency != "EUR" || l.By != "a" || l.Memo != "late <fee>" || l.Version != 2 || l.On == nil || *l.On != l.Version-1 {
		t.Errorf("got %s", lines[1])
	}
	l = Line{}
	if err := json.Unmarshal(lines[3], &l); err != nil {
		t.Fatal(err)
	}
	if l.Outcome != "refused" || l.Code != BelowFloor || l.Reason == "" || l.Amount != 300 || l.Change != 0 ||
		l.Balance != 70 {
		t.Errorf("got %s", lines[3])
	}
}

// Wherever a kill has torn the last line, nothing is lost and nothing stands there twice.
func TestLedgerTorn(t *testing.T) {
	k := kept{}
	for range 3 {
		k.decide(t, "account:1", Credit, 100)
	}
	whole := newLedgerFile(t)
	whole.record(k, "account:1")
	text := whole.text()
	for cut := 0; cut < len(text); cut += 31 {
		f := newLedgerFile(t)
		if err := os.WriteFile(f.name, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f.open()
		f.record(k, "account:1")
		if !bytes.Equal(f.text(), text) {
			t.Fatalf("cut after %d bytes:\n%s\nwanted\n%s", cut, f.text(), text)
		}
	}
}

// Whatever is changed in a ledger is found, and it is not gone on with.
func TestLedgerTampered(t *testing.T) {
	k, f := kept{}, newLedgerFile(t)
	for range 4 {
		k.decide(t, "account:1", Credit, 100)
	}
	f.record(k, "account:1")
	lines := bytes.SplitAfter(f.text(), []byte("\n"))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for what, text := range map[string][]byte{
		"changed": join(lines[0], bytes.Replace(lines[1], []byte(`"amount":100`), []byte(`"amount":900`), 1), lines[2]),
		"removed": join(lines[0], lines[2], lines[3]),
		"begun":   join(lines[1], lines[2]),
		"moved":   join(lines[1], lines[0], lines[2]),
		"added":   join(lines[0], lines[0], lines[1]),
		"hashed":  join(lines[0], []byte(`{"line":2,"hash":"`+strings.Repeat("0", 64)+"\"}\n")),
		"none":    []byte("no ledger\n"),
	} {
		if err := NewReader().Read(bytes.NewReader(text)); err == nil {
			t.Errorf("%s: the reader does not mind", what)
		}
		name := filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLedger(file); err == nil {
			t.Errorf("%s: it is gone on with", what)
		}
		file.Close()
		if after, _ := os.ReadFile(name); !bytes.Equal(after, text) {
			t.Errorf("%s: the file was changed", what)
		}
	}
}

// Entries that the server has forgotten leave a visible gap.
func TestLedgerGaps(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, k kept)
		want  string // in the error; "" for none
	}{
		{"nothing", func(*testing.T, kept) {}, ""},
		{"forgotten", func(_ *testing.T, k kept) { k.drop("account:1", 2) }, "entry 5 was decided on version"},
		{"forgotten refusals", func(t *testing.T, k kept) {
			k["account:1"] = k["account:1"][:2]
			for range 3 {
				k.decide(t, "account:1", Debit, 1000)
			}
			k.drop("account:1", 1)
		}, ""},
		{"a writer that does not say the version", func(_ *testing.T, k kept) {
			k.drop("account:1", 1)
			k["account:1"][0].Reply = bytes.Replace(k["account:1"][0].Reply, []byte(`"on":`), []byte(`"was":`), 1)
		}, "between entries 2 and 6"},
		{"a change past the writer", func(_ *testing.T, k kept) {
			for i := range k["account:1"] {
				e := &k["account:1"][i]
				e.Reply = bytes.Replace(
					e.Reply, fmt.Appendf(nil, `"on":%d`, e.Document.Version-1), fmt.Appendf(nil, `"on":%d`, e.Document.Version+6), 1,
				)
				e.Document.Version += 7
			}
		}, "entry 3 was decided on version"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, f := kept{}, newLedgerFile(t)
			k.decide(t, "account:1", Credit, 100)
			k.decide(t, "account:1", Credit, 100)
			f.record(k, "account:1")
			for range 4 {
				k.decide(t, "account:1", Credit, 100)
			}
			tt.spoil(t, k)
			err := f.Record(t.Context(), k, "account:1")
			gap, ok := errors.AsType[*GapError](err)
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want == "":
				return
			case !ok || !strings.Contains(gap.What, tt.want):
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			f.wants("1/1 1/2")
			if again := f.Record(t.Context(), k, "account:1"); again == nil || f.Err() == nil {
				t.Error("the ledger goes on after the gap")
			}
			// Accepted, it stands in the ledger.
			f.open()
			f.OnGap = func(*GapError) {}
			f.record(k, "account:1")
			r := NewReader()
			if err := r.Read(bytes.NewReader(f.text())); err != nil || len(r.Gaps()) != 1 {
				t.Errorf("got %v, %q", err, r.Gaps())
			}
		})
	}
}

// The first entry that there is of an account is its first, or nothing was before it.
func TestLedgerBegins(t *testing.T) {
	for _, tt := range []struct {
		keep  int
		since time.Duration
		gap   bool
	}{{3, 0, false}, {2, 0, true}, {2, 3 * time.Second, false}, {1, 3 * time.Second, true}} {
		k, f := kept{}, newLedgerFile(t)
		for range 3 {
			k.decide(t, "account:1", Credit, 100)
		}
		k.drop("account:1", tt.keep)
		if tt.since > 0 {
			f.Since = noon.Add(tt.since)
		}
		err := f.Record(t.Context(), k, "account:1")
		if gap := err != nil; gap != tt.gap {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}

// A document shows when the log of an account is gone, or is another server's.
func TestLedgerVerify(t *testing.T) {
	k, f := kept{}, newLedgerFile(t)
	k.decide(t, "account:1", Credit, 100)
	k.decide(t, "account:1", Credit, 100)
	now := k["account:1"][1].Document
	none := func(context.Context) (interlock.Document, error) { return interlock.Document{}, nil }
	if err := f.Verify(t.Context(), k, now, none); err != nil {
		t.Fatal(err)
	}
	// The ledger went on after the document was read.
	if err := f.Verify(
		t.Context(), k, interlock.Document{Key: now.Key, Version: 1},
		func(context.Context) (interlock.Document, error) { return now, nil },
	); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		version interlock.Version
		want    string
	}{{now.Version + 1, "is kept, has left version"}, {now.Version - 1, "was the server restored?"}} {
		f.open()
		if err := f.Verify(t.Context(), k, interlock.Document{Key: now.Key, Version: tt.version}, none); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("version %d: got %v", tt.version, err)
		}
	}
}

// full is a disk that takes so many bytes.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	if f.room -= n; n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func TestLedgerCannotBeWritten(t *testing.T) {
	k := kept{}
	k.decide(t, "account:1", Credit, 100)
	l := NewLedger(&full{100})
	if err := l.Record(t.Context(), k, "account:1"); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	<-l.Failed()
	if err := l.ahead(t.Context(), k, "account:2"); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("afterwards: got %v", err)
	}
}

// A ledger continues another file.
func TestLedgerAfter(t *testing.T) {
	k, f := kept{}, newLedgerFile(t)
	k.decide(t, "account:1", Credit, 100)
	k.decide(t, "account:1", Credit, 100)
	f.record(k, "account:1")
	k.decide(t, "account:1", Credit, 100)
	k.drop("account:1", 1)
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "next"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	next, err := OpenLedger(file, bytes.NewReader(f.text()))
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Record(t.Context(), k, "account:1"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader()
	if err := cmp.Or(r.Read(bytes.NewReader(f.text())), r.Read(bytes.NewReader(text))); err != nil {
		t.Error(err)
	}
	if lines, _ := r.End(); lines != 3 || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%d lines, the last file is %s", lines, text)
	}
}

// Everything that a world of accounts has decided has its line, and the changes of the
// balances add up.
func TestLedgerOfWorld(t *testing.T) {
	w := newWorld(t, 7)
	w.run(600)
	f := newLedgerFile(t)
	entries := 0
	for _, key := range w.keys {
		entries += len(w.logs[key])
		f.record(kept(w.logs), key)
	}
	sums := map[interlock.Key]Money{}
	for text := range bytes.Lines(f.text()) {
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		sums[l.Account] += l.Change
		if sums[l.Account] != l.Balance {
			t.Fatalf("the changes make %d: %s", sums[l.Account], text)
		}
		if from, to := l.From == l.Account, l.To == l.Account; l.Change < 0 && !from || l.Change > 0 && !to {
			t.Errorf("the money goes another way: %s", text)
		}
	}
	if f.Lines() != uint64(entries) {
		t.Errorf("%d lines of %d entries", f.Lines(), entries)
	}
}

// firstEntries is a source that has the first entries of each log.
type firstEntries struct {
	logs kept
	n    uint64
}

func (f firstEntries) Log(ctx context.Context, key interlock.Key, from uint64) iter.Seq2[interlock.LogEntry, error] {
	return func(yield func(interlock.LogEntry, error) bool) {
		for entry, err := range f.logs.Log(ctx, key, from) {
			if entry.Seq > f.n || !yield(entry, err) {
				return
			}
		}
	}
}

// TestLedgerOfManyCallers has several goroutines record accounts of their own at once. Each line
// reaches the file, also one that is added while another caller begins to write.
func TestLedgerOfManyCallers(t *testing.T) {
	const accounts, entries, rounds = 8, 40, 100
	logs := kept{}
	for i := range accounts {
		for range entries {
			logs.decide(t, interlock.Key(fmt.Sprintf("account:%d", i)), Credit, 1)
		}
	}
	for range rounds {
		var file bytes.Buffer
		l := NewLedger(&file)
		var all sync.WaitGroup
		for i := range accounts {
			all.Go(func() {
				for n := range uint64(entries) {
					if err := l.Record(
						t.Context(), firstEntries{logs, n + 1}, interlock.Key(fmt.Sprintf("account:%d", i)),
					); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		r := NewReader()
		if err := r.Read(&file); err != nil {
			t.Fatal(err)
		}
		if lines, _ := r.End(); lines != accounts*entries {
			t.Fatalf("%d lines, of %d", lines, accounts*entries)
		}
	}
}
