package past

import (
	"bytes"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// Each kind of difference is a row, and names cannot forge another row or colours.
func TestShow(t *testing.T) {
	hostile := api.Name{Agent: "evil\x1b[31m\nlease  free  gone\u202e"}
	d := &api.Differences{
		Sums: api.DifferenceSums{
			Leases: api.DifferenceCount{Changed: 1}, Waiters: api.DifferenceCount{New: 1, Changed: 2},
			Documents: api.DifferenceCount{Gone: 1}, Tasks: api.DifferenceCount{Changed: 4},
		},
		Leases: []api.LeaseDifference{{
			Key: "gpu:pool", Change: "changed",
			Before: &api.LeaseThen{Name: hostile, Mode: "exclusive", Fence: 4, Liveness: "live"},
			After:  &api.LeaseThen{Name: api.Name{Agent: "b"}, Mode: "permits", Count: 2, Fence: 5, Liveness: "parked"},
		}},
		Waiters: []api.WaiterDifference{
			{Name: api.Name{Agent: "c"}, Keys: []api.Key{"a:1", "a:2"}, Change: "new", After: &api.WaiterThen{Position: 3}},
			{Name: hostile, Change: "changed", Before: &api.WaiterThen{Position: 1}, After: &api.WaiterThen{Offered: true}},
			{Name: api.Name{Agent: "d"}, Change: "changed", Before: &api.WaiterThen{}, After: &api.WaiterThen{Position: 1}},
			{Name: api.Name{Agent: "e"}, On: &api.Name{Agent: "auditor"}, Change: "gone", Before: &api.WaiterThen{}},
		},
		Documents: []api.DocumentDifference{{
			Key: "doc:1", Change: "gone", Before: &api.DocumentThen{Version: 7, Agent: "ann", Note: "x\ny"},
		}},
		Tasks: []api.TaskDifference{{
			Task: "q_1", Queue: "fees", Kind: "charge", Purpose: "late\nfee", Change: "changed",
			Before: &api.TaskThen{State: "running", Attempt: 1}, After: &api.TaskThen{State: "dead", Attempt: 3},
		}},
		LeftOut: 3,
	}
	d.From.Index, d.To.Index = 41, 44
	var out, complaints bytes.Buffer
	a := cli.NewApp(nil)
	a.Out, a.Err = &out, &complaints
	if err := show(a, d); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 10 || strings.ContainsAny(out.String(), "\x1b\u202e") {
		t.Fatalf("there are %d lines, want 10:\n%q", len(lines), lines)
	}
	for i, want := range map[int]string{
		0: "Different: 1 lease (0 new, 0 gone, 1 changed), 3 waiters (1 new, 0 gone, 2 changed), " +
			"1 document (0 new, 1 gone, 0 changed), 4 tasks (0 new, 0 gone, 4 changed).",
		3: "lease gpu:pool changed evil",
		4: "waiter c for a:1, a:2 new - position 3",
		5: "changed position 1 has an offer",
		6: "waiter d changed waits position 1",
		7: "waiter e for the agent auditor gone waits -",
		8: "document doc:1 gone version 7 by ann: x",
		9: "task q_1 charge late",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.Contains(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	for _, want := range []string{"b, fence 5, permits 2, parked", "fence 4"} {
		if !strings.Contains(lines[3], want) {
			t.Errorf("%q lacks %q", lines[3], want)
		}
	}
	if got := strings.Join(strings.Fields(lines[9]), " "); !strings.HasSuffix(got, "running, attempt 1 dead, attempt 3") {
		t.Errorf("the task is %q", got)
	}
	if got := complaints.String(); !strings.Contains(got, "from entry 41 to entry 44") || !strings.Contains(
		got, "3 differences are left out: choose moments that are nearer to each other, or --prefix",
	) {
		t.Errorf("it complains %q", got)
	}
}
