package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// The balance is exact, whichever process dies.
func TestAccount(t *testing.T) {
	var out bytes.Buffer
	if err := Account(
		t.Context(), Config{Out: &out, JSON: true, Dir: t.TempDir(), Binary: launchtest.Binary(t)},
	); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var r accountResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Holds || r.Balance != 125_000 || r.Fees != 25 || r.Credits != 25 || !r.Replayed || r.Redeliveries == 0 {
		t.Errorf("%+v", r)
	}
	var codes []string
	for _, a := range r.GoneAround {
		codes = append(codes, a.Code)
	}
	if want := []string{
		string(interlock.CodeWriterOnly), string(interlock.CodeForbidden), string(interlock.CodeForbidden), "above_maximum",
		"too_urgent", "above_maximum", "over_budget", "not_from_writer",
	}; !slices.Equal(codes, want) {
		t.Errorf("going around was refused with %q, wanted %q", codes, want)
	}
	if r.Entries != 1+50+5 {
		t.Errorf("the log has %d entries", r.Entries)
	}
}

func TestAccountTellsItsStory(t *testing.T) {
	var out bytes.Buffer
	if err := Account(t.Context(), Config{Out: &out, Dir: t.TempDir(), Binary: launchtest.Binary(t)}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"writer-1 is killed (-9)", "the server is killed (-9) while writer-2",
		"debits 900.00 as critically urgent: too_urgent",
		"> send it with priority 10: urgency changes the order of the line", "1250.00 exact", "every state and reply equal",
		"8, refused 8", "pulls from the writer's queue: forbidden", "under the name of the treasury: above_maximum",
		"Each command has counted once",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
}

func TestAccountNeedsItsOwnServer(t *testing.T) {
	err := Account(t.Context(), Config{Server: "127.0.0.1:1"})
	if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != interlock.CodeInvalidRequest {
		t.Errorf("got %v", err)
	}
}
