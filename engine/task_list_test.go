package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// TestListingsGoOn: a listing of tasks continues where its page ended, whatever has become of
// the tasks on it.
func TestListingsGoOn(t *testing.T) {
	const tasks, page = 40, 3
	for _, listing := range []struct {
		name string
		ask  *interlock.Question
		page func(s *stand, from *engine.AskedAt) (rows []engine.Task, more bool)
	}{
		{"tasks", nil, func(s *stand, from *engine.AskedAt) ([]engine.Task, bool) {
			l := engine.TaskList{Namespace: "bench", After: from.Num, Limit: page}
			for !l.Look(s.e) {
			}
			from.Num = l.Next
			return l.Rows, l.More
		}},
		{"approvals", &interlock.Question{Text: "may I?"}, func(s *stand, from *engine.AskedAt) ([]engine.Task, bool) {
			l := engine.Approvals{Namespace: "bench", After: *from, Limit: page}
			for !l.Look(s.e) {
			}
			*from = l.Next
			return l.Rows, l.More
		}},
	} {
		t.Run(listing.name, func(t *testing.T) {
			s := newStand()
			s.step(&engine.SetQueue{Head: s.head(interlock.SessionID{}), Queue: interlock.TaskQueue{Name: "q"}})
			var want, got []string
			for i := range tasks {
				want = append(want, fmt.Sprint(i))
				s.step(&engine.Submit{Head: s.head(
					interlock.SessionID{},
				), Agent: "ann", Task: engine.TaskSpec{ID: s.id(), TaskSpec: interlock.TaskSpec{
					Queue: "q", Kind: want[i], Ask: listing.ask,
				}}})
				s.want(t, engine.Done)
			}
			var from engine.AskedAt
			for more := true; more; {
				var rows []engine.Task
				rows, more = listing.page(s, &from)
				if len(rows) == 0 {
					t.Fatal("a page without tasks")
				}
				for i := range rows {
					got = append(got, rows[i].Kind)
					for _, change := range []engine.TaskChange{engine.CancelTask, engine.DiscardTask} {
						s.step(&engine.ChangeTask{Head: s.head(interlock.SessionID{}), Task: rows[i].ID, Change: change})
						s.want(t, engine.Done)
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("listed %v, want %v", got, want)
			}
		})
	}
}
