package merger

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// The limit of a queue is set where there is none, in the queues of the checks alone, and nothing else of it changes.
func TestFreeWorkers(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	if err := r.author.SetQueue(ctx, interlock.TaskQueue{
		Name: web.CheckQueue("lint"), MaxAttempts: 1, MaxHold: time.Minute,
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.author.SetQueue(ctx, interlock.TaskQueue{
		Name: web.CheckQueue("unit"), MaxAttempts: 1, Stall: time.Minute,
		Pull: []string{"runner"}, Approvers: []string{"ops"},
	}); err != nil {
		t.Fatal(err)
	}
	before, err := r.author.Queues(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		todo, err := FreeWorkers(ctx, r.author, web, time.Hour, "unit", "lint")
		if err != nil || len(todo) != 1 || !strings.Contains(todo[0], "a run ends after 1m0s") {
			t.Errorf("left to do: %q, %v", todo, err)
		}
	}
	after, err := r.author.Queues(ctx)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d queues, and then %d, %v", len(before), len(after), err)
	}
	for i := range before {
		want, got := before[i], after[i]
		if want.Name == web.CheckQueue("unit") {
			want.MaxHold = time.Hour
		}
		if got.MaxHold != want.MaxHold || got.MaxAttempts != want.MaxAttempts || got.Stall != want.Stall ||
			len(got.Pull) != len(want.Pull) || len(got.Approvers) != len(want.Approvers) {
			t.Errorf("queue %s is %+v, want %+v", want.Name, got.TaskQueue, want.TaskQueue)
		}
	}
}
