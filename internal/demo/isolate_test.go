package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// Each change builds alone, and all of them in any order that decides again.
func TestIsolateTasks(t *testing.T) {
	tasks := isolateTasks()
	if len(tasks) != 20 {
		t.Errorf("%d tasks", len(tasks))
	}
	all := firstProgram()
	if err := all.build(); err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		alone := firstProgram()
		if task.done(alone) {
			t.Errorf("%s: done before it began", task.purpose)
		}
		task.do(alone)
		if err := alone.build(); err != nil || !task.done(alone) {
			t.Errorf("%s alone: %v", task.purpose, err)
		}
		task.do(all)
		task.do(all)
	}
	if err := all.build(); err != nil {
		t.Error(err)
	}
	for _, task := range tasks {
		if !task.done(all) {
			t.Errorf("%s is not in the whole", task.purpose)
		}
	}
	red := firstProgram()
	tasks[1].do(red)
	caller := red["reminder.go"]
	tasks[0].do(red)
	red["reminder.go"] = caller
	if err := red.build(); err == nil {
		t.Error("the rename and a new caller build together")
	}
}

// Without a merge queue changes are lost, and commits do not build.
func TestIsolatePush(t *testing.T) {
	tools.Need(t, "git")
	r, err := newIsolateRun(t.Context(), t.TempDir(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.play(r.push); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r.result)
	if c := r.result; c.Changes != 20 || c.Commits < 10 || c.Lost == 0 || c.Red == 0 || c.Overwrote == 0 {
		t.Errorf("%+v\n%v", c, r.told)
	}
}

// With workspaces and a merge queue no change is lost and every commit builds.
func TestIsolate(t *testing.T) {
	tools.Need(t, "git", "postgres", "psql")
	var out bytes.Buffer
	cfg := Config{Out: &out, JSON: true, Dir: t.TempDir(), Binary: launchtest.Binary(t), Speed: 20}
	if err := Isolate(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var r isolateResults
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Push.Lost == 0 || r.Push.Red == 0 || r.Push.Commits != 20 {
		t.Errorf("direct pushes: %+v", r.Push)
	}
	// Four pairs change one line each, the rename collides with the rounding, and either it or its new callers fail.
	if r.Queue.Lost != 0 || r.Queue.Red != 0 || r.Queue.LastBroken || r.Queue.Commits != 20 || r.Queue.Returned < 5 {
		t.Errorf("merge queue: %+v", r.Queue)
	}
	if !strings.HasPrefix(r.Verified, "20 landings, 20 as computed again") {
		t.Errorf("merge verify: %s", r.Verified)
	}
	if m := r.Migration; m.Skipped != "" || m.PushLost != 1 || m.QueueLost != 0 || !m.Untouched ||
		!strings.Contains(m.Returned, "number 0042 is taken by 0042_email.sql; 0043 is free") {
		t.Errorf("migrations: %+v", m)
	}
}

// The part with migrations tells in a line that it was left out, and has a problem for each claim that it did not show.
func TestMigrationTellsItsStory(t *testing.T) {
	for _, c := range []struct {
		result   migrationResult
		want     string
		problems int
	}{
		{migrationResult{Skipped: "PostgreSQL is not installed"}, "left out, PostgreSQL is not installed", 0},
		{migrationResult{Migrations: 2, PushLost: 1, Returned: "taken", Untouched: true}, "1 of 2", 0},
		{migrationResult{Migrations: 2, PushLost: 1, Returned: "taken"}, "was changed", 1},
		{migrationResult{Migrations: 2, QueueLost: 2, Returned: "taken", Untouched: true}, "2 of 2", 2},
		{migrationResult{Migrations: 2, PushLost: 1, Untouched: true}, "is as it was", 1},
	} {
		var out bytes.Buffer
		c.result.tell(&out)
		if list := c.result.problems(); !strings.Contains(out.String(), c.want) || len(list) != c.problems {
			t.Errorf("%+v: %q in\n%s", c.result, list, out.String())
		}
	}
}

func TestIsolateTellsItsStory(t *testing.T) {
	var out bytes.Buffer
	r := isolateResults{
		Migration: migrationResult{Skipped: "there is none"},

		Push:  isolateResult{Changes: 20, Lost: 3, Commits: 20, Red: 4},
		Queue: isolateResult{Changes: 20, Lost: 1, Commits: 20},
	}
	queue := &isolateRun{began: time.Now()}
	for range shownMoments + 2 {
		queue.say("%s", reasonOf("{}\ninterlock: returned: Your change is kept, and "+strings.Repeat("it is long ", 20)))
	}
	err := r.conclude(Config{Out: &out}, &isolateRun{}, queue)
	if err == nil || !strings.Contains(err.Error(), "1 changes were lost") {
		t.Errorf("a lost change: %v", err)
	}
	for _, want := range []string{
		"1. Direct pushes", "it is long", "...\n", "and 2 more", "3 of 20", "1 of 20", "merge queue",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
}
