package demo

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// Each strategy costs what it is said to cost, and loses nothing.
func TestStale(t *testing.T) {
	tools.Need(t, "git")
	var out bytes.Buffer
	err := Stale(t.Context(), Config{Out: &out, JSON: true, Dir: t.TempDir(), Binary: launchtest.Binary(t), Speed: 60})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var r staleResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 || len(r.Ways) != len(strategies) {
		t.Fatalf("%+v", r)
	}
	at := func(id string) *staleStrand {
		i := slices.IndexFunc(strategies, func(s strategy) bool { return s.id == id })
		return &r.Ways[i]
	}
	if w := at("unguarded"); w.Balance == r.Expected || w.Edits != 1 {
		t.Errorf("unguarded, nothing was lost: %+v", w)
	}
	if w := at("leases"); w.WaitingMS == 0 || w.RepeatedMS != 0 || w.TookMS < 9000 {
		t.Errorf("leases: %+v", w)
	}
	if w := at("versions"); w.RepeatedMS != 6000 || w.ThinkingMS != 15000 || w.TookMS < 12000 ||
		!strings.Contains(w.Packet, support.note) {
		t.Errorf("versions: %+v", w)
	}
	if w := at("additions"); w.RepeatedMS != 0 || w.WaitingMS != 0 || w.Merged != 1 || w.Packet != "" {
		t.Errorf("additions: %+v", w)
	}
}

func TestStaleTellsItsStory(t *testing.T) {
	tools.Need(t, "git")
	var out bytes.Buffer
	if err := Stale(
		t.Context(), Config{Out: &out, Dir: t.TempDir(), Binary: launchtest.Binary(t), Speed: 100},
	); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"divided by 100", "billing is refused: it read version", "> Your environment changed while you were thinking.",
		"> | credit of 12.00, as promised", "in line; now it reads what is true", "is merged with what was written meanwhile",
		"135.00 wrong", "123.00 exact", "1 of 2", "2 of 2, merged",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
}
