package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

func TestReport(t *testing.T) {
	r := New(Options{})
	for i, e := range []struct {
		kind   record.Kind
		reason record.Reason
		key    interlock.Key
		took   time.Duration
	}{
		{record.Granted, 0, "account:1", 0},
		{record.Admitted, 0, "account:1", 8 * time.Second},
		{record.Admitted, 0, "account:2", 2 * time.Second},
		{record.Left, record.ByWaitLimit, "account:2", 5 * time.Second},
		{record.Ended, record.ByRelease, "account:1", 4 * time.Second},
		{record.Ended, record.ByTTL, "account:1", 16 * time.Second},
		{record.Granted, 0, "repo:web", 0},
		{record.Queued, 0, "repo:web", 0},
	} {
		ev := record.Event{
			Kind: e.kind, At: record.Time(time.Second) * record.Time(i+1), Namespace: "one", Fence: 1,
			Claims: []interlock.Claim{{Key: e.key, Mode: interlock.Exclusive}}, Reason: e.reason, Agent: "billing",
		}
		if e.kind == record.Ended || e.kind == record.Closed {
			ev.Held = e.took
		} else {
			ev.Waited = e.took
		}
		r.Add(interlock.Index(i+1), &ev)
	}
	p := r.Report(record.Time(time.Minute))
	var got string
	for _, s := range append([]*Sums{&p.All}, p.Classes...) {
		got += fmt.Sprintf("%q %d %d %d %s; ", s.Class, s.Grants, s.Waits, s.Failures, s.Lost)
	}
	if want := `"" 4 3 2 15s; "account:" 3 3 2 15s; "repo:" 1 0 0 0s; `; got != want {
		t.Errorf("the sums are %s, want %s", got, want)
	}
	w, h := p.All.Wait(50), p.All.Hold(99)
	if w < 5*time.Second || w > 6*time.Second || h < 16*time.Second || h > 20*time.Second {
		t.Errorf("p50 wait %v, p99 hold %v", w, h)
	}
	want := fmt.Sprint([]Key{{"account:1", 1, 8 * time.Second}, {"account:2", 2, 7 * time.Second}})
	if fmt.Sprint(p.Top) != want {
		t.Errorf("the top keys are %v, want %v", p.Top, want)
	}
	said := "2 incidents: 1 lost lease, 1 long wait. 4 grants, 3 waits, 15s lost, most at account:1: 8.0s. " +
		"1 wait goes on, 52s so far."
	if got := p.Verdict(); got != said {
		t.Errorf("the verdict is %q, want %q", got, said)
	}
	if n := len(p.Incidents.Incidents); n != 2 {
		t.Errorf("%d incidents, want a lost lease and a stuck wait", n)
	}
}
