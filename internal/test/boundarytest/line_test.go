package boundarytest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/merge/merger"
)

// The naive model of the line: what a freeze keeps does not land, a stack lands in its order, and a submission lands
// before those that came later, and before those that wait without a priority if it has one.

// waiting are the tasks of submissions that have no outcome yet, in the order in which they were sent.
func (w *world) waiting() (list []string) {
	w.Helper()
	for _, id := range w.order {
		if !w.task(id).State.IsSettled() {
			list = append(list, id)
		}
	}
	return list
}

func (w *world) task(id string) interlock.Task {
	w.Helper()
	parsed, err := interlock.ParseTaskID(id)
	if err != nil {
		w.Fatal(err)
	}
	t, err := w.client.Task(busy.Context(w), parsed)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// disturb notes that the places of all that wait may change.
func (w *world) disturb() {
	for _, id := range w.waiting() {
		w.sent[id].disturbed = true
	}
}

// freeze freezes the target, with some agents as exceptions.
func (w *world) freeze() {
	w.Helper()
	w.frozen, w.excepted = w.token(), map[string]bool{}
	args := []string{"merge", "freeze", w.repo + "/main", "--reason", w.frozen}
	for _, a := range w.agents {
		if w.excepted[a.name] = w.rng.IntN(2) == 0; w.excepted[a.name] {
			args = append(args, "--except-by", a.name)
		}
	}
	if got := w.interlock("operator", w.dir, args...); got.code != 0 {
		w.Errorf("merge freeze: %+v", got)
	}
	w.disturb()
	// A landing that has begun may end. What the merger does after it has read the freeze counts.
	busy.Wait(w, "the merger reads the freeze", func() bool {
		log, err := os.ReadFile(filepath.Join(w.dir, "merger.log"))
		return err == nil && strings.Contains(string(log), w.frozen) || len(w.waiting()) == 0
	})
	w.frozenAt = w.git(w.upstream, "rev-parse", "refs/heads/main")
}

// thaw lets the landings go on. What has landed since the freeze was excepted.
func (w *world) thaw() {
	w.Helper()
	heads := w.git(w.upstream, "log", "--first-parent", "--format=%P", w.frozenAt+"..refs/heads/main")
	for line := range strings.Lines(heads) {
		_, head, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.ContainsFunc(w.order, func(id string) bool {
			return w.sent[id].head == head && w.excepted[w.sent[id].agent]
		}) {
			w.Errorf("%s landed while the target was frozen", head)
		}
	}
	if got := w.interlock("operator", w.dir, "merge", "thaw", w.repo+"/main"); got.code != 0 {
		w.Errorf("merge thaw: %+v", got)
	}
	w.frozen = ""
}

// rush has all agents submit while no check ends, the last one with a priority. With one check of one submission at a
// time it passes all that wait but the first one.
func (w *world) rush() {
	w.Helper()
	if !w.single || w.frozen != "" {
		return
	}
	gate := make(chan struct{})
	w.mu.Lock()
	w.gate = gate
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.gate = nil
		w.mu.Unlock()
		close(gate)
	}()
	before := len(w.order)
	for i, a := range w.agents {
		if a.tree == "" {
			a.create()
		}
		if a.odd {
			return
		}
		a.edit()
		if i < len(w.agents)-1 {
			a.submit(true)
		} else {
			a.submit(true, "--priority", "100")
		}
	}
	if len(w.order) != before+len(w.agents) {
		return
	}
	sent := w.order[before:]
	for _, id := range sent {
		var s merger.Submission
		if err := json.Unmarshal(w.task(id).Payload, &s); err != nil {
			w.Fatal(err)
		}
		name := merger.Name{Repo: w.repo, Target: "main"}
		busy.Wait(w, "the merger takes "+id, func() bool {
			_, found, err := merger.Standing(busy.Context(w), w.client, name, w.task(id).ID, s)
			return err == nil && found || w.task(id).State.IsSettled()
		})
	}
	w.sent[sent[len(sent)-1]].passes = sent[len(sent)-2]
}

// pass waits while no check may end.
func (w *world) pass(ctx context.Context) {
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

// turn is a submission's turn in line, as the model has it: that of the oldest one that it has superseded, with what
// has happened to all of those.
type turn struct {
	at        int
	prior     bool
	unsettled bool // what happened may have changed the place
}

// turns are those of all submissions, by their tasks.
func (w *world) turns() map[string]turn {
	byName := map[string]string{}
	turns := map[string]turn{}
	for i, id := range w.order {
		s := w.sent[id]
		byName[s.outcome.Submission] = id
		again := slices.ContainsFunc(w.order[:i], func(o string) bool { // it may have the place of a returned one
			return w.sent[o].workspace == s.workspace && w.sent[o].outcome.Code == merger.Returned
		})
		turns[id] = turn{i, s.prior, s.disturbed || again || s.odd}
	}
	for i, id := range w.order {
		if s := w.sent[id]; s.outcome.Code == merger.Superseded {
			by := byName[s.outcome.By]
			a, b := turns[id], turns[by]
			if w.sent[by] != nil && slices.Index(w.order, by) > i {
				turns[by] = turn{min(a.at, b.at), a.prior || b.prior, a.unsettled || b.unsettled}
			}
		}
	}
	return turns
}

// auditLine compares the landings with the turns.
func (w *world) auditLine() {
	w.Helper()
	landed := func(id string) *merger.Landing { return w.sent[id].outcome.Landing }
	turns := w.turns()
	for _, id := range w.order {
		y := w.sent[id]
		if landed(id) == nil {
			continue
		}
		if y.on != "" && w.sent[y.on] != nil && !y.odd {
			_, err := w.try(w.upstream, "git", "merge-base", "--is-ancestor", w.sent[y.on].head, landed(id).Parent)
			if err != nil {
				w.Errorf("%s of %s landed before %s, which it builds on: %v", id, y.agent, y.on, err)
			}
		}
		if x := y.passes; x != "" && !turns[id].unsettled && !turns[x].unsettled && landed(x) != nil &&
			landed(x).Sequence < landed(id).Sequence {
			w.Errorf("%s of %s has a priority, and landed behind %s", id, y.agent, x)
		}
		for _, o := range w.order {
			x, at, before := w.sent[o], turns[id], turns[o]
			if landed(o) == nil || before.at >= at.at || before.unsettled || at.unsettled || x.on != "" ||
				at.prior && !before.prior {
				continue
			}
			if landed(o).Sequence > landed(id).Sequence {
				w.Errorf("the turn of %s of %s was before that of %s of %s, and it landed behind", o, x.agent, id, y.agent)
			}
		}
	}
}
