package merger

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/merge"
)

// A stack lands in its order and in one move, also as squashes that change the same lines.
func TestStackLands(t *testing.T) {
	for _, style := range []merge.Style{merge.StyleMerge, merge.StyleSquash} {
		r := newRig(t)
		r.work(anything)
		head := r.begin
		var tasks []interlock.TaskID
		var ids []string
		on := ""
		for i := range 4 {
			base := head
			head = r.commit(head, files{"README": fmt.Sprintf("one\n%d\nthree\n", i)})
			id := fmt.Sprintf("s-%d", i)
			tasks = append(tasks, r.submit(Submission{ID: id, Head: head, On: on, Style: style, Base: base}))
			ids, on = append(ids, id), id
		}
		r.start(r.config("merger"))
		for _, task := range tasks {
			if o := r.result(task); o.Code != Landed {
				t.Fatalf("%s: %+v", style, o)
			}
		}
		if got := r.landings(); !slices.Equal(got, ids) {
			t.Errorf("%s: landed %v", style, got)
		}
	}
}

// What builds on a submission goes back with it, however that one ends, and without a try that counts; others land.
func TestBaseReturned(t *testing.T) {
	ends := map[string]struct {
		bad  bool // the base fails its checks
		end  func(*rig)
		word string
	}{
		"returned": {bad: true, word: "was returned (checks)"},
		"withdrawn": {end: func(r *rig) {
			if _, _, err := Withdraw(t.Context(), withdrawer{r.author}, web, "a"); err != nil {
				t.Fatal(err)
			}
		}, word: "it was withdrawn"},
		"superseded": {end: func(r *rig) {
			r.submit(Submission{ID: "a-2", Workspace: "w", Head: r.commit(r.begin, files{"a": "2\n"})})
		}, word: `was superseded by "a-2", which lacks its commit`},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			hold := make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			r.work(func(tree files) bool { <-hold; return good(tree) })
			t.Cleanup(release)
			text := files{"a": "1\n"}
			if c.bad {
				text["bad"] = "1\n"
			}
			base := r.commit(r.begin, text)
			r.submit(Submission{ID: "a", Workspace: "w", Head: base})
			b := r.commit(base, files{"b": "1\n"})
			second := r.submit(Submission{ID: "b", Head: b, On: "a"})
			third := r.submit(Submission{ID: "c", Head: r.commit(b, files{"c": "1\n"}), On: "b"})
			other := r.submit(Submission{ID: "o", Head: r.commit(r.begin, files{"o": "1\n"})})
			r.start(r.config("merger"))
			for _, id := range []string{"b", "c", "o"} {
				r.waitFor(id, func(*Record) bool { return true })
			}
			if c.end != nil {
				c.end(r)
			}
			if c.bad {
				release()
			}
			o := r.result(second)
			if o.Code != Returned || o.Reason != WhyBase || o.By != "a" || o.Tries != 0 ||
				!strings.Contains(o.Message, c.word) {
				t.Errorf("%+v", o)
			}
			if o := r.result(third); o.Reason != WhyBase || o.By != "b" {
				t.Errorf("%+v", o)
			}
			release()
			if o := r.result(other); o.Code != Landed {
				t.Errorf("%+v", o)
			}
			// It keeps its place, and lands without the base.
			again := r.submit(Submission{ID: "b", Resubmits: "b", Head: r.commit(r.begin, files{"b": "2\n"})})
			if o := r.result(again); o.Code != Landed {
				t.Errorf("%+v", o)
			}
		})
	}
}

// A newer submission that has the commit of the older one becomes the base.
func TestBaseSuperseded(t *testing.T) {
	r := newRig(t)
	hold := make(chan struct{})
	r.work(func(files) bool { <-hold; return true })
	base := r.commit(r.begin, files{"a": "1\n"})
	r.submit(Submission{ID: "a", Workspace: "w", Head: base})
	second := r.submit(Submission{ID: "b", Head: r.commit(base, files{"b": "1\n"}), On: "a"})
	r.start(r.config("merger"))
	r.waitFor("b", func(*Record) bool { return true })
	newer := r.submit(Submission{ID: "a-2", Workspace: "w", Head: r.commit(base, files{"a": "2\n"})})
	r.waitFor("b", func(b *Record) bool { return b.On == "a-2" })
	close(hold)
	if a, b := r.result(newer), r.result(second); a.Code != Landed || b.Code != Landed {
		t.Errorf("%+v, %+v", a, b)
	}
	if got := r.landings(); !slices.Equal(got, []string{"a-2", "b"}) {
		t.Errorf("landed %v", got)
	}
}

// No submission enters with a base that is not there, is not in its history, or builds on it.
func TestBaseRefused(t *testing.T) {
	r := newRig(t)
	hold := make(chan struct{})
	r.work(func(files) bool { <-hold; return true })
	defer close(hold)
	a := r.commit(r.begin, files{"a": "1\n"})
	b := r.commit(a, files{"b": "1\n"})
	r.submit(Submission{ID: "a", Workspace: "w", Head: a})
	r.submit(Submission{ID: "b", Head: b, On: "a"})
	r.start(r.config("merger"))
	r.waitFor("b", func(*Record) bool { return true })
	for i, c := range []struct {
		s      Submission
		reason Why
		word   string
	}{
		{Submission{ID: "x", Head: b, On: "nothing"}, WhyBase, "was never there"},
		{Submission{ID: "x", Head: b, On: "x"}, WhyPolicy, "builds on itself"},
		{Submission{ID: "x", Head: r.commit(r.begin, files{"x": "1\n"}), On: "a"}, WhyPolicy, "its history lacks commit"},
		{Submission{ID: "x", Workspace: "w", Head: r.commit(b, files{"x": "1\n"}), On: "b"}, WhyPolicy, "builds on itself"},
		{Submission{ID: "x", Workspace: "w", Head: b, On: "a"}, WhyPolicy, "both are of one workspace"},
		{Submission{ID: "x", Head: b, On: "../b"}, WhyPolicy, "cannot be read"},
	} {
		task, err := r.author.Submit(t.Context(), clientSpec(c.s, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if o := r.result(task.ID); o.Code != Returned || o.Reason != c.reason || !strings.Contains(o.Message, c.word) {
			t.Errorf("%+v: %+v", c.s, o)
		}
	}
}

// A base that comes later than what builds on it is waited for, also by another merger.
func TestBaseComesLater(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	stop := r.start(r.config("merger"))
	base := r.commit(r.begin, files{"a": "1\n"})
	task := r.delayed(Submission{ID: "a", Head: base})
	second := r.submit(Submission{ID: "b", Head: r.commit(base, files{"b": "1\n"}), On: "a"})
	r.waitFor("b", func(*Record) bool { return true })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.start(r.config("merger-2"))
	if a, b := r.result(task), r.result(second); a.Code != Landed || b.Code != Landed {
		t.Errorf("%+v, %+v", a, b)
	}
	if got := r.landings(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("landed %v", got)
	}
}
