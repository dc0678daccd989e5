package merger

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// freeze freezes the target, and thaws it with nil.
func (r *rig) freeze(f *Freeze) {
	r.t.Helper()
	_, err := r.author.Update(r.t.Context(), web.FreezeKey(), func(interlock.Document) (interlock.Write, error) {
		if f == nil {
			return client.Delete(web.FreezeKey()), nil
		}
		return client.Put(web.FreezeKey(), encode(f)), nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// delayed submits a task that no merger gets for a while.
func (r *rig) delayed(s Submission) interlock.TaskID {
	r.t.Helper()
	spec := clientSpec(s, "delayed-"+s.ID)
	spec.Delay = 300 * time.Millisecond
	task, err := r.author.Submit(r.t.Context(), spec)
	if err != nil {
		r.t.Fatal(err)
	}
	return task.ID
}

// prior submits with a priority.
func (r *rig) prior(s Submission, priority int) interlock.TaskID {
	r.t.Helper()
	spec := clientSpec(s, "prior-"+s.ID)
	spec.Priority = priority
	task, err := r.author.Submit(r.t.Context(), spec)
	if err != nil {
		r.t.Fatal(err)
	}
	return task.ID
}

// While the target is frozen what is excepted lands, past what stood before it; the rest lands in its order afterwards.
func TestFreeze(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	var tasks []interlock.TaskID
	for _, id := range []string{"a", "b", "c"} {
		tasks = append(tasks, r.submit(Submission{ID: id, Head: r.commit(r.begin, files{id: "1\n"})}))
	}
	r.freeze(&Freeze{Reason: "release", Submissions: []Excepted{
		{ID: "b", Agent: "author"}, {ID: "c", Agent: "another"}, {ID: "fix", Agent: "author"},
	}})
	stop := r.start(r.config("merger"))
	if o := r.result(tasks[1]); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	late := r.submit(Submission{ID: "late", Head: r.commit(r.begin, files{"late": "1\n"})})
	r.waitFor("late", func(*Record) bool { return true })
	if err := stop(); err != nil { // also another merger finds it frozen
		t.Fatal(err)
	}
	r.start(r.config("merger-2"))
	hot := r.prior(Submission{ID: "hot", Head: r.commit(r.begin, files{"hot": "1\n"})}, 1)
	r.waitFor("hot", func(*Record) bool { return true })
	fix := r.submit(Submission{ID: "fix", Head: r.commit(r.begin, files{"fix": "1\n"})})
	if o := r.result(fix); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	r.freeze(&Freeze{Priority: true})
	if o := r.result(hot); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	if got := r.landings(); !slices.Equal(got, []string{"b", "fix", "hot"}) {
		t.Errorf("landed %v while the target was frozen", got)
	}
	r.freeze(nil)
	for _, id := range append(tasks, late) {
		if o := r.result(id); o.Code != Landed {
			t.Errorf("%+v", o)
		}
	}
	if got := r.landings(); !slices.Equal(got, []string{"b", "fix", "hot", "a", "c", "late"}) {
		t.Errorf("landed %v", got)
	}
}

// A stack waits for its base in a freeze, also where its end is excepted, and a document that cannot be read excepts
// nothing.
func TestFreezeOfBase(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	_, err := r.author.Update(t.Context(), web.FreezeKey(), func(interlock.Document) (interlock.Write, error) {
		return client.Put(web.FreezeKey(), []byte(`[1]`)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := FreezeOf(t.Context(), r.author, web)
	if err != nil || f == nil || f.Lands(&Record{Agent: "author"}) || !strings.Contains(f.Text(web), "cannot be read") {
		t.Errorf("%+v, %v", f, err)
	}
	r.freeze(&Freeze{Credentials: []string{"author"}, Submissions: []Excepted{{ID: "a"}}})
	if f, err = FreezeOf(t.Context(), r.author, web); err != nil || !f.Lands(&Record{Agent: "author"}) ||
		f.Lands(&Record{Agent: "author", Principal: "another"}) {
		t.Errorf("%+v, %v", f, err)
	}
	base := r.commit(r.begin, files{"a": "1\n"})
	first := r.submit(Submission{ID: "a", Head: base})
	second := r.submit(Submission{ID: "b", Head: r.commit(base, files{"b": "1\n"}), On: "a"})
	r.freeze(&Freeze{Submissions: []Excepted{{ID: "b", Agent: "author"}}})
	r.start(r.config("merger"))
	other := r.submit(Submission{ID: "o", Head: r.commit(r.begin, files{"o": "1\n"})})
	r.waitFor("o", func(*Record) bool { return true })
	r.freeze(&Freeze{Submissions: []Excepted{{ID: "b", Agent: "author"}, {ID: "o", Agent: "author"}}})
	if o := r.result(other); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	if got := r.landings(); !slices.Equal(got, []string{"o"}) {
		t.Errorf("landed %v", got)
	}
	r.freeze(nil)
	if a, b := r.result(first), r.result(second); a.Code != Landed || b.Code != Landed {
		t.Errorf("%+v, %+v", a, b)
	}
}

// A submission with a priority passes those without that wait, behind what is being checked and what has one itself,
// and in that order also after a take-over.
func TestPriority(t *testing.T) {
	r := newRig(t)
	hold := make(chan struct{})
	r.work(func(files) bool { <-hold; return true })
	c := r.config("merger")
	c.Train.Runners, c.Train.FirstBatch = 1, 1
	stop := r.start(c)
	var tasks []interlock.TaskID
	submit := func(id string, priority int) {
		s := Submission{ID: id, Head: r.commit(r.begin, files{id: "1\n"})}
		tasks = append(tasks, r.prior(s, priority))
		r.waitFor(id, func(*Record) bool { return true })
	}
	for _, id := range []string{"a", "b", "c"} {
		submit(id, 0)
	}
	submit("p-1", 50)
	submit("d", 0)
	submit("p-2", 100)
	submit("p-3", 1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c = r.config("merger-2")
	c.Train.Runners, c.Train.FirstBatch = 1, 1
	r.start(c)
	close(hold)
	for _, id := range tasks {
		if o := r.result(id); o.Code != Landed {
			t.Errorf("%+v", o)
		}
	}
	if got := r.landings(); !slices.Equal(got, []string{"a", "p-1", "p-2", "p-3", "b", "c", "d"}) {
		t.Errorf("landed %v", got)
	}
}

// goAhead by itself: how far a priority reaches.
func TestPriorityReaches(t *testing.T) {
	l := newLine(
		t,
		Record{Submission: Submission{ID: "old"}, Place: 1, Submitted: 1000},
		Record{Submission: Submission{ID: "base"}, Place: 2, Submitted: 1100},
		Record{Submission: Submission{ID: "prior"}, Place: 3, Submitted: 1200, Priority: 1},
		Record{Submission: Submission{ID: "new"}, Place: 4, Submitted: 1300},
		Record{Submission: Submission{ID: "last"}, Place: 5, Submitted: 1400},
	)
	for _, c := range []struct {
		r    Record
		want string
	}{
		{Record{Submitted: 1500, Priority: 9}, ""},
		{Record{Submitted: 1500, Priority: 10}, "last"},
		{Record{Submitted: 1500, Priority: 20}, "new"},
		{Record{Submitted: 1500, Priority: 100}, "new"},
		{Record{Submitted: 1500, Priority: -100}, ""},
		{Record{Submitted: 1500, Priority: 100, Submission: Submission{On: "new"}}, "last"},
		{Record{Submitted: 1500, Priority: 100, Place: 5}, "new"}, // it comes back to its place
	} {
		own := c.r
		own.ID, own.Place = "x", max(c.r.Place, 4)+2
		if c.r.Place > 0 {
			own.Place, own.Ahead = 5, 4
		}
		got := ""
		if first := l.goAhead(&own, 9, ""); first != nil {
			got = first.ID
		}
		if got != c.want {
			t.Errorf("%+v passes %q, want %q", c.r, got, c.want)
		}
	}
}

// The credentials that may submit with a priority.
func TestPriorityFor(t *testing.T) {
	m := &Merger{Config: Config{PriorityFor: []string{"ops"}}, principal: "merger"}
	for principal, want := range map[string]bool{"": true, "merger": true, "ops": true, "agent": false} {
		if m.mayHavePriority(principal) != want {
			t.Errorf("%q: %v", principal, !want)
		}
	}
	if m.PriorityFor = []string{"*"}; !m.mayHavePriority("agent") {
		t.Error("* does not mean each")
	}
}
