package engine_test

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/shard"
)

// TestStoredReasons: versions before v9 journaled sentences in the place of messages. Tasks of
// their journals are shown with the words that they wrote.
func TestStoredReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range goldens(t) {
		g := readGolden(t, dir)
		e := engine.New()
		var pieces shard.Joiner
		for _, x := range g.entries {
			entry, err := pieces.Join(x)
			must(t, err)
			if entry == nil {
				continue
			}
			must(t, e.Apply(entry))
			must(t, record.DecodeEntry(entry, func(ev *record.Event) error {
				if len(ev.Cause) > 0 || ev.Outcome == "" || interlock.TaskState(ev.Op) != interlock.TaskDead {
					return nil
				}
				switch ev.Kind {
				case record.AttemptFailed, record.TaskMoved, record.ApprovalDecided:
				default:
					return nil
				}
				task, known := e.Task(ev.Namespace, ev.ID)
				if words := prose.Task(&task).Reason; known && task.State == interlock.TaskDead && words != ev.Outcome {
					t.Errorf("%s: entry %d: %q is shown as %q", dir, x.Index, ev.Outcome, words)
				}
				seen[ev.Outcome] = true
				return nil
			}))
		}
	}
	for _, part := range []string{"its deadline has passed", "denied by policy: nobody answered within"} {
		found := false
		for words := range seen {
			found = found || strings.HasPrefix(words, part)
		}
		if !found {
			t.Errorf("no stored journal has a reason that begins with %q", part)
		}
	}
}
