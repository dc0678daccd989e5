//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// A head that was published is confirmed after a crash, a restart, a snapshot and a backup,
// and by no journal in which an entry before it is another one.
func TestJournalHead(t *testing.T) {
	r := newRig(t)
	head := func(key string) string {
		r.must("lock", key)
		return strings.TrimSpace(r.must("admin", "journal", "head"))
	}
	first := head("a:1")
	r.server.Kill()
	r.restart()
	second := head("a:2")
	if err := r.server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.restart() // from the snapshot that the stop has made
	third := head("a:3")
	r.server.Kill()

	out := r.must("admin", "journal", "verify", r.dir, "--head", first, "--head", third, "--head", second)
	for _, want := range []string{
		"confirmed  " + first, "confirmed  " + second, "confirmed  " + third, "nothing is wrong",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	if out, code := r.do("admin", "journal", "verify", r.dir, "--head", "7:ab"); code != cli.ExitUsage ||
		!strings.Contains(out, "64 hexadecimal digits") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	index, _, _ := strings.Cut(third, ":")
	if out, code := r.do("admin", "journal", "verify", r.dir, "--head", "9"+third); code != cli.ExitDamaged ||
		!strings.Contains(out, "it ends with entry "+index) {
		t.Errorf("a head behind the end: exit code %d\n%s", code, out)
	}

	// The journal is written anew, with one word in it changed: all checksums are right.
	forged := t.TempDir()
	j, err := filejournal.Open(t.Context(), forged, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	err = filejournal.Dump(t.Context(), r.dir, 2, func(e journal.Entry) error {
		if len(e.Data) == 0 { // each start opens an epoch
			err := j.Close()
			if err == nil {
				j, err = filejournal.Open(t.Context(), forged, filejournal.Options{})
			}
			return err
		}
		data := strings.Replace(string(e.Data), "a:2", "b:2", 1)
		changed = changed || data != string(e.Data)
		return j.Append(t.Context(), e.Index, [][]byte{[]byte(data)})
	})
	if err := errors.Join(err, j.Close()); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if out := r.must("admin", "journal", "verify", forged, "--head", first); !strings.Contains(out, "nothing is wrong") {
		t.Error(out)
	}
	out, code := r.do("admin", "journal", "verify", forged, "--head", first, "--head", second)
	from, _, _ := strings.Cut(first, ":")
	if code != cli.ExitDamaged || !strings.Contains(out, "an entry behind "+from+" and up to ") ||
		!strings.Contains(out, "result     changed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, code := r.do("admin", "journal", "verify", forged, "--head", second, "-o", "json"); code != cli.ExitDamaged ||
		!strings.Contains(out, `"result":"changed"`) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
