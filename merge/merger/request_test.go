package merger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/forgetest"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/forge"
)

// requesting is the configuration of a merger with requests to a forge.
func (r *rig) requesting(agent, kind string, f *forgetest.Forge) (Config, *Requests) {
	r.t.Helper()
	api, err := forge.New(forge.Config{
		Kind: kind, URL: f.URLOf(kind), Credential: func() (string, error) { return forgetest.Token, nil },
		Within: 2 * time.Second,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	c := r.config(agent)
	target := &merge.Target{Repository: r.git, Ref: "refs/heads/main", Remote: f.Dir, Signer: r.signer}
	q := &Requests{
		Offers: target, Branch: "refs/heads/main", Forge: api, Pause: time.Millisecond, Look: time.Millisecond, Log: c.Log,
	}
	c.Target = &Followed{q, target, r.git}
	return c, q
}

// landedAt lists the landings of the forge's branch, as Verify finds them, and checks that it finds nothing wrong.
func (r *rig) landedAt(f *forgetest.Forge) (ids []string) {
	r.t.Helper()
	r.run("fetch", "--quiet", f.Dir, "+refs/heads/main:refs/heads/verified", "+refs/interlock/*:refs/verified/*")
	profile, err := merge.NewProfile(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := merge.Open(r.t.Context(), merge.Config{Repository: r.git.Dir, Profile: profile, Discard: true})
	if err != nil {
		r.t.Fatal(err)
	}
	defer b.Close()
	head := r.run("rev-parse", "refs/heads/verified")
	report, err := b.Verify(r.t.Context(), head, 0, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if report.Damaged() || report.Same != report.Landings {
		r.t.Errorf("the branch of the forge: %+v", report)
	}
	history, err := b.History(r.t.Context(), head, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range history {
		ids = append(ids, h.ID)
		var l Landing
		if found, err := read(r.t.Context(), r.author, web.LandingKey(h.Sequence), &l); err != nil || !found {
			r.t.Errorf("landing %d has no document: %v", h.Sequence, err)
		} else if l.Commit != h.Commit || l.Tree != h.Tree {
			r.t.Errorf("landing %d is %+v, and the branch has %+v", h.Sequence, l, h)
		}
	}
	if got := f.Git("for-each-ref", "--format=%(refname)", "refs/heads/interlock/"); got != "" {
		r.t.Errorf("branches are left: %s", got)
	}
	return ids
}

// once checks that no landing had two requests, and none is open.
func (r *rig) once(f *forgetest.Forge) {
	r.t.Helper()
	seen := map[string]int{}
	for _, q := range f.Requests() {
		if seen[q.Branch]++; seen[q.Branch] > 1 || q.State == "open" {
			r.t.Errorf("of a landing: %+v", q)
		}
	}
}

// closedOrMerged checks that no request is open.
func (r *rig) closedOrMerged(f *forgetest.Forge) {
	r.t.Helper()
	for _, q := range f.Requests() {
		if q.State == "open" {
			r.t.Errorf("%+v", q)
		}
	}
}

// three submits three submissions, and returns their tasks.
func (r *rig) three() (tasks []interlock.TaskID) {
	for _, id := range []string{"a", "b", "c"} {
		tasks = append(tasks, r.submit(Submission{ID: id, Head: r.commit(r.begin, files{id: "1\n"})}))
	}
	return tasks
}

func (r *rig) allLand(tasks []interlock.TaskID) {
	r.t.Helper()
	for _, id := range tasks {
		if o := r.result(id); o.Code != Landed {
			r.t.Errorf("%+v", o)
		}
	}
}

// Landings go through requests of each kind of forge, merged or forwarded. The documents name the forge's commit.
func TestRequests(t *testing.T) {
	for _, kind := range forge.Kinds() {
		for _, how := range []forgetest.Method{forgetest.MergeCommit, forgetest.FastForward} {
			t.Run(kind+" "+string(how), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.work(anything)
				f := forgetest.New(t, r.git.Dir)
				f.Method = how
				c, _ := r.requesting("merger", kind, f)
				stop := r.start(c)
				r.allLand(r.three())
				o := r.result(r.submit(Submission{ID: "d", Head: r.commit(r.begin, files{"d": "1\n"})}))
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if got := r.landedAt(f); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
					t.Errorf("landed %v", got)
				}
				r.once(f)
				if head := f.Git("rev-parse", "main"); o.Landing == nil || (o.Landing.Carrier == head) != (how == "") ||
					how != "" && o.Landing.Commit != head {
					t.Errorf("%+v, and the forge is at %s", o, head)
				}
				for _, q := range f.Requests() {
					if !strings.Contains(q.Text, "Interlock-Request: "+q.Commit) || strings.Contains(q.Title+q.Text, "author") &&
						!strings.Contains(q.Text, "comes back to its author") {
						t.Errorf("%+v", q)
					}
				}
			})
		}
	}
}

// Each call of the forge goes wrong in each way, once or some times in a row: all submissions land, each once and by
// one request, and the health tells what keeps the forge from it. By day a call goes wrong in one way either once or
// three times, the merge itself both; the rounds of a night have the rest.
func TestRequestFaults(t *testing.T) {
	for i, fault := range forgetest.Faults() {
		for j, call := range forgetest.Calls() {
			for _, times := range []int{1, 3} {
				if testing.Short() && (times > 1 || (i+j)%4 != 0) {
					continue // each fault and each call is there
				}
				byDay := call == "merge" || testing.Short() || (times == 1) == ((i+j)%2 == 0)
				if byDay == (search.Round(t) > 0) {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %d", call, fault, times), func(t *testing.T) {
					t.Parallel()
					r := newRig(t)
					r.work(anything)
					f := forgetest.New(t, r.git.Dir)
					var refusals sync.Map
					if call == "failing" { // it is asked when a merge is refused
						f.Refuse = func(commit string) string {
							if _, again := refusals.LoadOrStore(commit, true); !again {
								return "Required status check \"ci\" is expected."
							}
							return ""
						}
					}
					f.Fault = func(got string, number int) forgetest.Fault {
						if got == call && number <= times {
							return fault
						}
						return ""
					}
					c, _ := r.requesting("merger", "github", f)
					stop := r.start(c)
					tasks := r.three()
					if call == "close" { // it closes what others were faster than
						commit := sync.OnceFunc(func() { hotfix(f) })
						f.Merging = func(string) { commit() }
						f.Refuse = strict(f)
					}
					r.allLand(tasks)
					if err := stop(); err != nil {
						t.Fatal(err)
					}
					got := r.landedAtSome(f, call == "close")
					if !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "c"}) {
						t.Errorf("landed %v", got)
					}
					r.once(f)
					if f.Called(call) == 0 {
						t.Errorf("%s was never called", call)
					}
				})
			}
		}
	}
}

// hotfix is a commit of others on the forge's branch.
func hotfix(f *forgetest.Forge) {
	f.Git("read-tree", "main")
	f.Git("update-index", "--add", "--cacheinfo", "100644,"+f.Git("rev-parse", "main:README")+",hotfix")
	f.Git("update-ref", "refs/heads/main", f.Git("commit-tree", f.Git("write-tree"), "-p", "main", "-m", "others"))
}

// strict is the rule of a forge that merges nothing onto another head than its request's.
func strict(f *forgetest.Forge) func(commit string) string {
	return func(commit string) string {
		if f.Git("merge-base", commit, "main") != f.Git("rev-parse", "main") {
			return "This branch must not be merged: it is out of date."
		}
		return ""
	}
}

// landedAtSome is landedAt of a branch that may have a commit of others.
func (r *rig) landedAtSome(f *forgetest.Forge, others bool) []string {
	if !others {
		return r.landedAt(f)
	}
	return strings.Fields(f.Git(
		"log", "--reverse", "--grep=^Interlock-Landing", "--format=%(trailers:key=Interlock-Submission,valueonly)", "main",
	))
}

// victim is the git and the forge of a merger that dies at a call: before it, or when it is done.
type victim struct {
	Offers
	Forge
	at    string
	after bool
	die   func()
}

func (v *victim) step(ctx context.Context, name string, do func() error) error {
	if v.at != name {
		return do()
	}
	if v.after {
		if err := do(); err != nil {
			return err
		}
	}
	v.die()
	<-ctx.Done()
	return ctx.Err()
}

func (v *victim) Offer(ctx context.Context, m merge.Move) (branch string, err error) {
	err = v.step(ctx, "offer", func() (err error) { branch, err = v.Offers.Offer(ctx, m); return err })
	return branch, err
}

func (v *victim) Settle(ctx context.Context, m merge.Move, head string) error {
	return v.step(ctx, "settle", func() error { return v.Offers.Settle(ctx, m, head) })
}

func (v *victim) Revoke(ctx context.Context, token uint64) (at merge.Position, err error) {
	err = v.step(ctx, "revoke", func() (err error) { at, err = v.Offers.Revoke(ctx, token); return err })
	return at, err
}

func (v *victim) Open(ctx context.Context, branch, base, title, text string) error {
	return v.step(ctx, "open", func() error { return v.Forge.Open(ctx, branch, base, title, text) })
}

func (v *victim) Merge(ctx context.Context, number int64, commit, title, text string) error {
	return v.step(ctx, "merge", func() error { return v.Forge.Merge(ctx, number, commit, title, text) })
}

func (v *victim) Close(ctx context.Context, number int64) error {
	return v.step(ctx, "close", func() error { return v.Forge.Close(ctx, number) })
}

// A merger dies at each step of a request, before it or after. The next one goes on from what it finds in the record,
// the fence and at the forge: nothing is lost, no landing has two requests, none lands twice.
func TestDeathAtRequest(t *testing.T) {
	for _, at := range []string{"offer", "open", "merge", "settle", "revoke", "close"} {
		for _, after := range []bool{false, true} {
			for _, others := range []bool{false, true} {
				if (at == "revoke" || at == "close") && !others {
					continue // nothing is taken back
				}
				t.Run(fmt.Sprintf("%s done=%v others=%v", at, after, others), func(t *testing.T) {
					t.Parallel()
					r := newRig(t)
					r.work(good)
					f := forgetest.New(t, r.git.Dir)
					commit := sync.OnceFunc(func() { hotfix(f) })
					if at == "revoke" || at == "close" {
						f.Merging = func(string) { commit() }
						f.Refuse = strict(f)
					}
					tasks := r.three()
					c, q := r.requesting("victim", "github", f)
					died := make(chan struct{})
					v := &victim{Offers: q.Offers, Forge: q.Forge, at: at, after: after, die: sync.OnceFunc(func() { close(died) })}
					q.Offers, q.Forge = v, v
					m, err := New(c)
					if err != nil {
						t.Fatal(err)
					}
					ctx, kill := context.WithCancel(t.Context())
					defer kill()
					ended := make(chan error, 1)
					go func() { ended <- m.Run(ctx) }()
					<-died
					_ = c.Client.Close(t.Context()) // its session ends, with the seat and all tasks
					kill()
					<-ended
					if others {
						commit() // before the next one begins
					}
					heir, _ := r.requesting("heir", "github", f)
					stop := r.start(heir)
					r.allLand(tasks)
					if err := stop(); err != nil {
						t.Fatal(err)
					}
					got := r.landedAtSome(f, others)
					if !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "c"}) {
						t.Errorf("landed %v", got)
					}
					r.once(f)
				})
			}
		}
	}
}

// A merger stops within its call of the forge until the next one has taken the landing back, and then makes the call.
// Nothing that was taken back lands, and none of it is offered again.
func TestStoppedMergerCannotRequest(t *testing.T) {
	for _, at := range []string{"offer", "open", "merge"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(good)
			f := forgetest.New(t, r.git.Dir)
			a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
			c, q := r.requesting("stopped", "github", f)
			s := &stoppedForge{
				Offers: q.Offers, Forge: q.Forge, at: at, stopped: make(chan struct{}), goOn: make(chan struct{}),
				done: make(chan error, 1),
			}
			q.Offers, q.Forge = s, s
			first, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			ctx, kill := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- first.Run(ctx) }()
			<-s.stopped
			_ = c.Client.Close(t.Context())
			r.freeze(&Freeze{Reason: "release"})
			next, _ := r.requesting("second", "github", f)
			stop := r.start(next)
			busy.Wait(t, "the end of the staged landing", func() bool {
				var at Target
				_, err := read(t.Context(), r.author, web.Key(), &at)
				return err == nil && at.Staged == nil
			})
			close(s.goOn)
			if err := <-s.done; err == nil {
				t.Errorf("the stopped merger has made its %s", at)
			}
			if got := f.Git("rev-parse", "main"); got != r.begin {
				t.Errorf("the forge is at %s, and nothing was to land", got)
			}
			r.freeze(nil)
			b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
			r.allLand([]interlock.TaskID{a, b})
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if got := r.landedAt(f); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("landed %v", got)
			}
			r.closedOrMerged(f)
			kill()
			<-ended
		})
	}
}

// stoppedForge stops before a call, and makes it later whatever its context.
type stoppedForge struct {
	Offers
	Forge
	at            string
	stopped, goOn chan struct{}
	done          chan error
}

func (s *stoppedForge) step(ctx context.Context, name string, do func(ctx context.Context) error) error {
	if s.at != name {
		return do(ctx)
	}
	close(s.stopped)
	<-s.goOn
	err := do(context.WithoutCancel(ctx))
	s.done <- err
	return err
}

func (s *stoppedForge) Offer(ctx context.Context, m merge.Move) (branch string, err error) {
	err = s.step(ctx, "offer", func(ctx context.Context) (err error) { branch, err = s.Offers.Offer(ctx, m); return err })
	return branch, err
}

func (s *stoppedForge) Open(ctx context.Context, branch, base, title, text string) error {
	return s.step(ctx, "open", func(ctx context.Context) error { return s.Forge.Open(ctx, branch, base, title, text) })
}

func (s *stoppedForge) Merge(ctx context.Context, number int64, commit, title, text string) error {
	return s.step(ctx, "merge", func(ctx context.Context) error {
		return s.Forge.Merge(ctx, number, commit, title, text)
	})
}

// What a forge refuses for its content comes back with its words, and the others land: a push, a check of the forge, a
// request that a person closes or changes.
func TestRequestRefused(t *testing.T) {
	// bad reports whether a commit of the forge has the file of the bad submission.
	bad := func(f *forgetest.Forge, commit string) bool {
		return strings.Contains(f.Git("ls-tree", "-r", "--name-only", commit), "bad")
	}
	change := func(f *forgetest.Forge, change func(q *forgetest.Request)) {
		f.Refuse = func(commit string) string {
			if !bad(f, commit) {
				return ""
			}
			return "At least 1 approving review is required."
		}
		f.Fault = func(call string, _ int) forgetest.Fault {
			for i, q := range f.Requests() {
				if call == "list" && q.State == "open" && bad(f, q.Commit) {
					f.Change(i+1, change)
				}
			}
			return ""
		}
	}
	for name, c := range map[string]struct {
		file  string
		set   func(f *forgetest.Forge)
		words string
	}{
		"a push": {"secret-bad", func(*forgetest.Forge) {}, "GH013"},
		"a check of the forge": {"bad", func(f *forgetest.Forge) {
			f.Refuse = func(commit string) string { return f.Failing(commit) }
			f.Failing = func(commit string) string {
				if bad(f, commit) {
					return "2 tests fail"
				}
				return ""
			}
		}, "2 tests fail"},
		"a person closes it": {"bad", func(f *forgetest.Forge) {
			change(f, func(q *forgetest.Request) { q.State = "closed" })
		}, "closed"},
		"a person changes the base": {"bad", func(f *forgetest.Forge) {
			f.Git("update-ref", "refs/heads/dev", "main")
			change(f, func(q *forgetest.Request) { q.Base = "dev" })
		}, "into \"dev\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(anything)
			f := forgetest.New(t, r.git.Dir)
			c.set(f)
			config, _ := r.requesting("merger", "github", f)
			tasks := r.three()
			no := r.submit(Submission{ID: "bad", Head: r.commit(r.begin, files{c.file: "1\n"})})
			stop := r.start(config)
			r.allLand(tasks)
			o := r.result(no)
			if o.Code != Returned || o.Reason != WhyRefused || o.Cause != CausePush || !strings.Contains(o.Words, c.words) {
				t.Errorf("%+v, want the words %q", o, c.words)
			}
			last := r.result(r.submit(Submission{ID: "d", Head: r.commit(r.begin, files{"d": "1\n"})}))
			if last.Code != Landed {
				t.Errorf("%+v", last)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if got := r.landedAt(f); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "c", "d"}) {
				t.Errorf("landed %v", got)
			}
			if name == "a person changes the base" {
				return
			}
			r.once(f)
		})
	}
}

// A forge that is gone, refuses each push or merges nothing is no fault of a submission: none comes back, the health
// has its words, and all land when it has gone.
func TestRequestOutage(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(f *forgetest.Forge)
		words string
	}{
		"it answers nothing": {func(f *forgetest.Forge) {
			f.Fault = func(string, int) forgetest.Fault { return forgetest.Unknown }
		}, "cannot be reached"},
		"each answer is an error": {func(f *forgetest.Forge) {
			f.Fault = func(string, int) forgetest.Fault { return forgetest.Fails }
		}, "something is broken"},
		"the token is refused": {func(f *forgetest.Forge) {
			f.Fault = func(string, int) forgetest.Fault { return forgetest.Denies }
		}, "Bad credentials"},
		"it merges nothing": {func(f *forgetest.Forge) {
			f.Refuse = func(string) string { return "At least 1 approving review is required." }
		}, "approving review"},
		"it reports merges": {func(f *forgetest.Forge) {
			f.Fault = func(call string, _ int) forgetest.Fault {
				if call == "merge" {
					return forgetest.Lies
				}
				return ""
			}
		}, "does not have it"},
		"it takes no branch": {func(f *forgetest.Forge) { f.SetHook("#!/bin/sh\necho GH000: no; exit 1\n") }, "GH000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(anything)
			f := forgetest.New(t, r.git.Dir)
			config, _ := r.requesting("merger", "github", f)
			config.MoveWithin = time.Nanosecond
			if name == "it takes no branch" { // the seat and the id are pushed before
				stop := r.start(config)
				if o := r.result(r.submit(Submission{ID: "0", Head: r.commit(r.begin, files{"0": "1\n"})})); o.Code != Landed {
					t.Fatalf("%+v", o)
				}
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				config, _ = r.requesting("next", "github", f)
				f.SetHook("#!/bin/sh\nwhile read old new ref; do case $ref in refs/heads/*) echo GH000: no; exit 1;; esac; done\n")
			} else {
				c.begin(f)
			}
			tasks := r.three()
			stop := r.start(config)
			h := r.waitHealth(func(h *Health) bool { return h.Failure != nil && h.Failure.Times > 2 })
			if !strings.Contains(h.Failure.Message, c.words) || strings.Contains(h.Failure.Message, forgetest.Token) ||
				h.Failure.Next == 0 {
				t.Errorf("%+v, want the words %q", h.Failure, c.words)
			}
			if err := stop(); err != nil { // an end of the outage, and of the merger
				t.Fatal(err)
			}
			f.Mend()
			f.SetHook("#!/bin/sh\nexit 0\n")
			config, _ = r.requesting("heir", "github", f)
			stop = r.start(config)
			r.allLand(tasks)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(r.landedAt(f), func(id string) bool { return id == "0" })
			if !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "c"}) {
				t.Errorf("landed %v", got)
			}
			r.once(f)
			r.waitHealth(func(h *Health) bool { return h.Failure == nil })
		})
	}
}

// A forge that squashes or rebases makes no landing: others have moved the target, and nothing is recorded as landed.
func TestRequestSquashed(t *testing.T) {
	for _, how := range []forgetest.Method{forgetest.Squash, forgetest.Rebase} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(anything)
			f := forgetest.New(t, r.git.Dir)
			f.Method = how
			config, _ := r.requesting("merger", "github", f)
			r.start(config)
			o := r.result(r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})}))
			if o.Code != Returned || !strings.Contains(o.Message, "has all changes") {
				t.Errorf("%+v, want a return, since the target has all of it", o)
			}
			var l Landing
			if found, err := read(t.Context(), r.author, web.LandingKey(1), &l); found || err != nil {
				t.Errorf("%+v is recorded, %v", l, err)
			}
		})
	}
}

// A request that others merge onto a head that they have moved is no landing: its tree was never checked.
func TestRequestOntoAnotherHead(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	f := forgetest.New(t, r.git.Dir)
	commit := sync.OnceFunc(func() { hotfix(f) })
	f.Merging = func(string) { commit() }
	config, _ := r.requesting("merger", "github", f)
	r.start(config)
	o := r.result(r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})}))
	if o.Code == Landed {
		t.Errorf("%+v, of a tree that was not checked", o)
	}
	b := r.result(r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})}))
	if b.Code != Landed || b.Landing.Sequence != 1 {
		t.Errorf("%+v", b)
	}
	r.once(f)
}
