package etcdtest

import (
	"encoding/hex"
	"fmt"
	"io"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// What an earlier version has left in etcd: keys and texts, and appends in hexadecimal digits.
var (
	storedTexts = map[string]string{
		"copied":     "yes",
		"epoch":      "2 EW3NENPUR64II4FW2IA53K3LEY",
		"format":     "1",
		"keeps/ring": "keys",
		"state":      "3 1-1 1 5 66db68df",
		"state/00000000000000000001-0000000001/0000000000": "state",
		"tail": "5 546f7831",
	}
	storedAppends = map[string]string{
		"log/00000000000000000003": "696c6b315a114b1202000000000000000100000000000000020000000a7e5f9801610162",
		"log/00000000000000000004": "696c6b31338418da04000000000000000200000000000000010000005a114b1200",
		"log/00000000000000000005": "696c6b3131786f540500000000000000020000000000000001000000338418da0163",
	}
)

// A journal that an earlier version has stored is read, and goes on.
func TestStoredJournal(t *testing.T) {
	c := startCluster(t)
	at := c.place()
	etcd := c.client()
	put := func(key, value string) {
		if _, err := etcd.Put(t.Context(), "interlock/"+at.Name+"/0/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	for key, text := range storedTexts {
		put(key, text)
	}
	for key, digits := range storedAppends {
		frame, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		put(key, string(frame))
	}
	j := c.own(c.store(at))
	if !j.Copied() || j.Epoch() != 3 || j.First() != 2 || j.Tail() != 6 {
		t.Fatalf("copied %v, epoch %d, entries %d to %d", j.Copied(), j.Epoch(), j.First(), j.Tail())
	}
	var got []string
	if err := j.Read(t.Context(), 2, func(e journal.Entry) error {
		got = append(got, fmt.Sprintf("%d/%d %s", e.Index, e.Epoch, e.Data))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := "[2/1 a 3/1 b 4/2  5/2 c 6/3 ]"; fmt.Sprint(got) != want {
		t.Errorf("read %v, want %s", got, want)
	}
	index, r, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	state, err := io.ReadAll(r)
	if index != interlock.Index(3) || string(state) != "state" || err != nil {
		t.Errorf("snapshot %d is %q, %v", index, state, err)
	}
	if keys, err := j.Kept("ring").Load(); string(keys) != "keys" || err != nil {
		t.Errorf("kept %q, %v", keys, err)
	}
	c.append(j, "d")
}
