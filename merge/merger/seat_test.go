package merger

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
)

// staging is a staged landing that no merger has written, with a submission that waits for its merger.
type staging struct {
	head   string
	target Target
	record Record
}

// TestStagedByOthers writes staged landings into the target's document, as agents could before its keys were reserved.
// The merger finishes none of them that was not computed and checked, and begins no seat twice for one: each submission
// comes back or lands by its own check.
func TestStagedByOthers(t *testing.T) {
	for name, change := range map[string]func(*staging){
		"no verdict":     func(*staging) {},
		"no landing":     func(s *staging) { s.target.Staged.Landings = nil },
		"another commit": func(s *staging) { s.target.Staged.Landings[0].Commit = s.head; s.target.Staged.New = s.head },
		"no such commit": func(s *staging) {
			s.target.Staged.New = strings.Repeat("d", 40)
			s.target.Staged.Landings[0].Commit = s.target.Staged.New
		},
		"another tree":    func(s *staging) { s.target.Staged.Landings[0].Tree = strings.Repeat("d", 40) },
		"another number":  func(s *staging) { s.target.Staged.Landings[0].Sequence += 7 },
		"another task":    func(s *staging) { s.target.Staged.Landings[0].Task = "q_" + strings.Repeat("0", 32) },
		"no record":       func(s *staging) { s.target.Staged.Landings[0].Submission = "other" },
		"another profile": func(s *staging) { s.target.Staged.Landings[0].Profile = "other" },
		"a moved head":    func(s *staging) { s.target.Staged.Old = strings.Repeat("d", 40) },
		"a verdict that is not kept": func(s *staging) {
			s.target.Staged.Landings[0].Passed = []Pass{{Check: "check", Tree: s.target.Staged.Landings[0].Tree}}
		},
		"a verdict on another tree": func(s *staging) {
			s.target.Staged.Landings[0].Passed = []Pass{{Check: "check", Tree: "good"}}
		},
		"another check's verdict": func(s *staging) {
			s.target.Staged.Landings[0].Passed = []Pass{{Check: "lint", Tree: s.target.Staged.Landings[0].Tree}}
		},
		"from another credential": func(s *staging) { s.target.Staged.By = "mallory" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.stage(change)
			r.work(good)
			r.start(r.config("merger"))
			task, err := interlock.ParseTaskID(s.record.Task)
			if err != nil {
				t.Fatal(err)
			}
			if o := r.result(task); o.Code != Returned || o.Reason != WhyChecks {
				t.Errorf("%+v", o)
			}
			if got := r.landings(); len(got) != 0 {
				t.Errorf("landed %v", got)
			}
		})
	}
}

// stage submits a change that fails its check, and writes a landing of it, as a merger would stage it, with a change.
func (r *rig) stage(change func(*staging)) *staging {
	r.t.Helper()
	ctx := r.t.Context()
	head := r.commit(r.begin, files{"bad": "1\n"})
	task := r.submit(Submission{ID: "bad", Head: head})
	got, err := r.author.Task(ctx, task)
	if err != nil {
		r.t.Fatal(err)
	}
	s := &staging{head: head, record: Record{
		Submission: Submission{ID: "bad", Head: head}, State: Waiting, Task: task.String(), Place: 99,
		Submitted: 1700000000, Admitted: 1700000000, Agent: got.Agent,
	}}
	c := r.config("forger")
	landing, err := c.Boundary.Land(ctx, new(Merger).turn(&s.record, r.begin, 1, []string{"check"}))
	if err != nil {
		r.t.Fatal(err)
	}
	s.target = Target{Ref: "refs/heads/main", Head: r.begin, Staged: &Staged{
		Old: r.begin, New: landing.Commit, Landings: []Landing{{
			Sequence: 1, Submission: "bad", Task: task.String(), Commit: landing.Commit, Tree: landing.Tree,
			Parent: r.begin, Profile: landing.Profile, Checks: []string{"check"},
		}},
	}}
	change(s)
	seat, err := c.Client.Acquire(ctx, client.Request{Keys: []interlock.Key{web.Key()}})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := seat.Commit(ctx, client.Commit{Writes: []interlock.Write{
		client.Put(web.Key(), encode(s.target)), client.Put(web.RecordKey("bad"), encode(s.record)),
	}}); err != nil {
		r.t.Fatal(err)
	}
	if err := seat.Release(ctx, client.Outcome{}); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// A document that is none of a merger's does not end the line.
func TestMalformedDocuments(t *testing.T) {
	for _, key := range []interlock.Key{
		web.Key(), web.RecordKey("one"), web.withdrawKey("one"), web.homeKey("w"), web.repositoryKey(),
	} {
		t.Run(string(key), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			seat, err := r.author.Acquire(t.Context(), client.Request{Keys: []interlock.Key{key}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := seat.Commit(t.Context(), client.Commit{
				Writes: []interlock.Write{client.Put(key, []byte(`[5]`))},
			}); err != nil {
				t.Fatal(err)
			}
			if err := seat.Release(t.Context(), client.Outcome{}); err != nil {
				t.Fatal(err)
			}
			r.work(good)
			r.start(r.config("merger"))
			task := r.submit(Submission{ID: "one", Head: r.commit(r.begin, files{"one": "1\n"}), Workspace: "w"})
			if o := r.result(task); o.Code != Landed {
				t.Errorf("%+v", o)
			}
		})
	}
}

// Each landing has the verdicts that let it land.
func TestLandingsHaveTheirVerdicts(t *testing.T) {
	r := newRig(t)
	r.work(good)
	var tasks []interlock.TaskID
	for _, id := range []string{"one", "two", "three"} {
		tasks = append(tasks, r.submit(Submission{ID: id, Head: r.commit(r.begin, files{id: "1\n"})}))
	}
	r.start(r.config("merger"))
	var trees []string
	for _, task := range tasks {
		trees = append(trees, r.result(task).Landing.Tree)
	}
	for i, task := range tasks {
		passed := r.result(task).Landing.Passed
		if len(passed) != 1 || passed[0].Check != "check" || !slices.Contains(trees[i:], passed[0].Tree) {
			t.Fatalf("landing %d has passed %+v", i+1, passed)
		}
		id, err := interlock.ParseTaskID(passed[0].Task)
		if err != nil {
			t.Fatal(err)
		}
		if run, err := r.author.Task(t.Context(), id); err != nil || run.State != interlock.TaskDone ||
			run.Queue != web.CheckQueue("check") {
			t.Errorf("landing %d has passed in task %+v: %v", i+1, run, err)
		}
	}
}

// A merger of another repository does not take the seat, nor does one of the same repository if the branch has lost the
// last landing and the fence, except with Adopt.
func TestAnotherRepository(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	stop := r.start(r.config("merger"))
	if o := r.result(r.submit(Submission{ID: "one", Head: r.commit(r.begin, files{"one": "1\n"})})); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	prepare := func(c Config) error {
		t.Helper()
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		return m.Prepare(t.Context())
	}
	another := func(what string, err error) {
		t.Helper()
		if no, ok := errors.AsType[*AnotherRepository](err); !ok || !strings.Contains(no.Error(), "--adopt") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := prepare(r.config("again")); err != nil {
		t.Errorf("the same repository: %v", err)
	}
	own := r.run("rev-parse", merge.IdentityRef)
	r.run("update-ref", "-d", merge.IdentityRef)
	another("another id", prepare(r.config("other")))
	r.run("update-ref", merge.IdentityRef, own)
	landed := r.head()
	r.run("update-ref", "refs/heads/main", r.begin)
	if err := prepare(r.config("rewound")); err != nil {
		t.Errorf("a rewound branch: %v", err)
	}
	r.run("update-ref", "-d", "refs/interlock/fence/main")
	another("a branch without its landing", prepare(r.config("other")))
	c := r.config("adopted")
	c.Adopt = true
	if err := prepare(c); err != nil {
		t.Errorf("an adopted repository: %v", err)
	}
	r.run("update-ref", "refs/heads/main", landed)
	if err := prepare(r.config("back")); err != nil {
		t.Errorf("the landing is back: %v", err)
	}
	var known Origin
	d, err := r.author.Document(t.Context(), web.repositoryKey())
	if err != nil || json.Unmarshal(d.Body, &known) != nil || known.ID != own || known.Root != r.begin {
		t.Errorf("the repository is kept as %+v: %v", known, err)
	}
	has := func(yes bool) func(string) (bool, error) { return func(string) (bool, error) { return yes, nil } }
	if err := CheckRepository(t.Context(), r.author, web, own, has(false)); err != nil {
		t.Errorf("a workspace of the same repository: %v", err)
	}
	if err := CheckRepository(t.Context(), r.author, web, "", has(true)); err != nil {
		t.Errorf("a workspace of a clone: %v", err)
	}
	another("a workspace of another one", CheckRepository(t.Context(), r.author, web, strings.Repeat("d", 40), has(true)))
	another("a workspace of another history", CheckRepository(t.Context(), r.author, web, "", has(false)))
}
