package merger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

const resolvers = "resolve.web"

// resolving is a merger with a queue of resolvers.
func (r *rig) resolving(agent string) Config {
	r.t.Helper()
	if err := SetupResolver(r.t.Context(), r.author, resolvers); err != nil {
		r.t.Fatal(err)
	}
	c := r.config(agent)
	c.Resolver = resolvers
	return c
}

// resolver runs an agent that answers conflicts.
func (r *rig) resolver(answer func(p Resolution) (Answer, error)) {
	r.t.Helper()
	if err := SetupResolver(r.t.Context(), r.author, resolvers); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := r.hire("neutral")
	done := make(chan error, 1)
	go func() {
		done <- c.Work(ctx, client.Worker{
			Queue: resolvers, Drain: time.Millisecond,
			Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
				var p Resolution
				if err := job.Decode(&p); err != nil {
					return client.Done{}, err
				}
				a, err := answer(p)
				return client.Done{Result: a}, err
			},
		})
	}()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the resolver: %v", err)
		}
	})
}

// join makes a commit with the files of one side, changed, and both sides as parents.
func (r *rig) join(p Resolution, changes files) string {
	tree := r.run("rev-parse", r.commit(p.Ours, changes)+"^{tree}")
	id := r.run("commit-tree", tree, "-p", p.Theirs, "-p", p.Ours, "-m", "both")
	r.run("update-ref", p.Push, id)
	return id
}

// contest submits two changes of one line; the first one lands.
func (r *rig) contest(second Submission) interlock.TaskID {
	r.t.Helper()
	first := Submission{ID: "first", Head: r.commit(r.begin, files{"README": "one\n2\nthree\n"})}
	if o := r.result(r.submit(first)); o.Code != Landed {
		r.t.Fatalf("%+v", o)
	}
	second.ID, second.Head = "second", r.commit(r.begin, files{"README": "one\nzwei\nthree\n", "mine": "m\n"})
	return r.submit(second)
}

// A resolver gets both intents, and its commit lands in the place of the submission; the author has nothing to do.
func TestResolver(t *testing.T) {
	for _, style := range []Submission{{Message: "zwei"}, {Message: "zwei", Style: "squash"}} {
		t.Run(string(style.Style), func(t *testing.T) {
			r := newRig(t)
			r.work(good)
			asked := make(chan Resolution, 1)
			r.resolver(func(p Resolution) (Answer, error) {
				asked <- p
				return Answer{Commit: r.join(p, files{"README": "one\n2 zwei\nthree\n", "mine": "m\n"}), Note: "kept both"}, nil
			})
			r.start(r.resolving("merger"))
			if style.Style == "squash" {
				style.Base = r.begin
			}
			o := r.result(r.contest(style))
			if o.Code != Landed || o.Landing.Resolved == nil || o.Landing.Resolved.Note != "kept both" ||
				!strings.Contains(o.Message, `"kept both"`) {
				t.Fatalf("%+v", o)
			}
			if text := r.run("cat-file", "blob", "main:README"); text != "one\n2 zwei\nthree" {
				t.Errorf("README is %q", text)
			}
			p := <-asked
			if p.Author.Agent != "author" || p.Author.Purpose != "change second" || p.Author.Message != "zwei" ||
				len(p.Landed) != 1 || p.Landed[0].Purpose != "change first" || p.Landed[0].Sequence != 1 ||
				!strings.Contains(p.OursDiff, "+2") || !strings.Contains(p.TheirsDiff, "+zwei") ||
				strings.Contains(p.TheirsDiff, "mine") || !strings.Contains(p.Conflicts[0].Hunks, "zwei") || p.Base != r.begin {
				t.Errorf("%+v", p)
			}
		})
	}
}

// An answer that is none, of each kind, returns the conflict to its author, as without a resolver.
func TestResolverDoesNotHelp(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(r *rig, p Resolution) (Answer, error)
		want   string
	}{
		"it gives up": {func(*rig, Resolution) (Answer, error) {
			return Answer{}, errors.New("both are wrong")
		}, "both are wrong"},
		"no commit": {func(*rig, Resolution) (Answer, error) { return Answer{Commit: "HEAD"}, nil }, "names no commit"},
		"not pushed": {func(*rig, Resolution) (Answer, error) {
			return Answer{Commit: strings.Repeat("1", 40)}, nil
		}, "has no commit"},
		"one side only": {func(_ *rig, p Resolution) (Answer, error) {
			return Answer{Commit: p.Theirs}, nil
		}, "does not descend"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.work(good)
			r.resolver(func(p Resolution) (Answer, error) { return c.answer(r, p) })
			r.start(r.resolving("merger"))
			o := r.result(r.contest(Submission{}))
			if o.Code != Returned || o.Reason != WhyConflict || o.Tries != 1 || !strings.Contains(o.Message, c.want) {
				t.Errorf("%+v", o)
			}
		})
	}
}

// Without a resolver at work the conflict is returned in time, and meanwhile others land.
func TestResolverInTime(t *testing.T) {
	r := newRig(t)
	r.work(good)
	c := r.resolving("merger")
	c.ResolveWithin = 500 * time.Millisecond
	r.start(c)
	second := r.contest(Submission{})
	other := r.result(r.submit(Submission{ID: "other", Head: r.commit(r.begin, files{"other": "o\n"})}))
	if o := r.result(second); other.Code != Landed || o.Reason != WhyConflict {
		t.Errorf("%+v, then %+v", other, o)
	}
}

// A result that conflicts with what has landed meanwhile goes to a resolver again, three times at most.
func TestResolverTriesThreeTimes(t *testing.T) {
	r := newRig(t)
	r.work(good)
	tries := 0
	var stop func() error
	r.resolver(func(p Resolution) (Answer, error) {
		tries++
		a := Answer{Commit: r.join(p, files{"README": "one\nboth " + string(rune('0'+tries)) + "\nthree\n"})}
		// The target changes the line once more, before the result is back.
		next := r.commit(p.Ours, files{"README": "one\n" + a.Commit + "\nthree\n"})
		if o := r.result(r.submit(Submission{ID: "next-" + string(rune('0'+tries)), Head: next})); o.Code != Landed {
			t.Errorf("%+v", o)
		}
		return a, nil
	})
	stop = r.start(r.resolving("merger"))
	if o := r.result(r.contest(Submission{})); o.Reason != WhyConflict || o.Tries != 1 || tries != maxResolutions {
		t.Errorf("after %d tries: %+v", tries, o)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A merger that takes over waits for the resolver that the one before has asked.
func TestResolverOutlivesTheMerger(t *testing.T) {
	r := newRig(t)
	r.work(good)
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	r.resolver(func(p Resolution) (Answer, error) {
		asked <- struct{}{}
		<-goOn
		return Answer{Commit: r.join(p, files{"README": "one\nboth\nthree\n"})}, nil
	})
	stop := r.start(r.resolving("merger"))
	second := r.contest(Submission{})
	<-asked
	r.waitFor("second", func(record *Record) bool { return record.Resolving != nil })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c := r.resolving("second-merger")
	c.Train = train.Config{Runners: 1}
	r.start(c)
	close(goOn)
	if o := r.result(second); o.Code != Landed || o.Landing.Resolved == nil {
		t.Errorf("%+v", o)
	}
	if len(asked) != 0 {
		t.Errorf("%d more tasks for resolvers", len(asked))
	}
}

// A submission is withdrawn while its conflict is at a resolver, at once: a task that no resolver has is cancelled, and
// the result of another one is ignored.
func TestWithdrawFromResolver(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			r := newRig(t)
			r.work(good)
			asked, goOn := make(chan struct{}, 1), make(chan struct{})
			if taken {
				r.resolver(func(p Resolution) (Answer, error) {
					asked <- struct{}{}
					<-goOn
					return Answer{Commit: r.join(p, files{"README": "one\nboth\nthree\n"})}, nil
				})
			}
			r.start(r.resolving("merger"))
			second := r.contest(Submission{})
			record := r.waitFor("second", func(record *Record) bool { return record.Resolving != nil })
			want := "The task of its resolver, " + record.Resolving.Task + ", is cancelled"
			if taken {
				<-asked
				want = "task " + record.Resolving.Task + ": the result will be ignored"
			}
			if _, _, err := Withdraw(t.Context(), withdrawer{r.author}, web, "second"); err != nil {
				t.Fatal(err)
			}
			if o := r.result(second); o.Code != Withdrawn || !strings.Contains(o.Message, want) {
				t.Errorf("%+v; want %q", o, want)
			}
			close(goOn)
			id, err := interlock.ParseTaskID(record.Resolving.Task)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.author.Await(t.Context(), id)
			ended, ok := errors.AsType[*client.TaskError](err)
			if taken == ok || ok && ended.Task.State != interlock.TaskCancelled {
				t.Errorf("the task of the resolver: %v", err)
			}
			// The same commit goes to a resolver again, as another task.
			if !taken {
				spec := client.TaskSpec{Queue: web.Queue(), Payload: Submission{ID: "second", Head: record.Head}}
				if _, err := r.author.Submit(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
				again := r.waitFor("second", func(again *Record) bool { return again.Resolving != nil })
				if again.Resolving.Task == record.Resolving.Task {
					t.Errorf("the task of its resolver is %s again", again.Resolving.Task)
				}
			}
			third := r.submit(Submission{ID: "third", Head: r.commit(r.begin, files{"third": "3\n"})})
			if o := r.result(third); o.Code != Landed || slices.Contains(r.landings(), "second") {
				t.Errorf("%+v; landed %v", o, r.landings())
			}
		})
	}
}
