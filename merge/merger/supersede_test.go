package merger

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge"
)

// The newer submission of a workspace takes the place of the one that waits, in whatever order the merger gets them,
// and of no other workspace's.
func TestSupersede(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newRig(t)
		hold := make(chan struct{})
		r.work(func(files) bool { <-hold; return true })
		first := r.submit(Submission{ID: "first", Head: r.commit(r.begin, files{"first": "1\n"})})
		old := r.submit(Submission{ID: "w-1", Workspace: "w", WorkspaceID: "x", Head: r.commit(r.begin, files{"w": "old\n"})})
		other := r.submit(Submission{ID: "o-1", Workspace: "w", WorkspaceID: "y", Head: r.commit(r.begin, files{"o": "o\n"})})
		var stop func() error
		if late { // a merger has them in line already, and another one gets the newer one
			stop = r.start(r.config("merger"))
			r.waitFor("w-1", func(*Record) bool { return true })
			r.waitFor("o-1", func(*Record) bool { return true })
		}
		amended := r.commit(r.begin, files{"w": "new\n"})
		newer := r.submit(Submission{ID: "w-2", Workspace: "w", WorkspaceID: "x", Head: amended})
		if late {
			if o := r.result(old); o.Code != Superseded || o.By != "w-2" {
				t.Errorf("%+v", o)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		r.start(r.config("merger-2"))
		r.waitFor("w-2", func(*Record) bool { return true })
		close(hold)
		if o := r.result(old); o.Code != Superseded || o.By != "w-2" || o.Submission != "w-1" {
			t.Errorf("%+v", o)
		}
		for _, id := range []interlock.TaskID{first, newer, other} {
			if o := r.result(id); o.Code != Landed {
				t.Errorf("%+v", o)
			}
		}
		if got := r.landings(); !slices.Equal(got, []string{"first", "w-2", "o-1"}) {
			t.Errorf("landed %v", got)
		}
		var record Record
		if _, err := read(t.Context(), r.author, web.RecordKey("w-1"), &record); err != nil || record.State != Superseded {
			t.Errorf("%+v, %v", record, err)
		}
	}
}

// After a squash the next submission of the same history lands, whatever its style, also behind others' landings, and
// with a file that was changed in the same lines again.
func TestGoesOnAfterSquash(t *testing.T) {
	for _, style := range []merge.Style{merge.StyleSquash, merge.StyleMerge} {
		r := newRig(t)
		r.work(anything)
		r.start(r.config("merger"))
		head := r.begin
		for _, text := range []string{"one\nA\nthree\n", "one\nB\nthree\n", "one\nC\nthree\n"} {
			head = r.commit(head, files{"README": text})
			n := strings.ToLower(text[4:5])
			s := Submission{ID: "s-" + n, Workspace: "w", Style: merge.StyleSquash, Base: r.begin, Head: head}
			if text[4] == 'C' {
				s.Style = style
			}
			if o := r.result(r.submit(s)); o.Code != Landed {
				t.Fatalf("%s: %+v", style, o)
			}
			o := r.result(r.submit(Submission{ID: "o-" + n, Head: r.commit(r.begin, files{"o-" + n: "1\n"})}))
			if o.Code != Landed {
				t.Fatalf("%+v", o)
			}
		}
		if text := r.run("cat-file", "blob", "main:README"); text != "one\nC\nthree" {
			t.Errorf("README is %q", text)
		}
		b := r.config("verifier").Boundary.(*merge.Boundary)
		report, err := b.Verify(t.Context(), r.head(), 0, nil)
		if err != nil || report.Same != 6 || len(report.Findings) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

// A landing that a rewind has dropped lands again, and one that is on the target does not.
func TestLandsAgainAfterRewind(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	stop := r.start(r.config("merger"))
	head := r.commit(r.begin, files{"a": "1\n"})
	first := r.submit(Submission{ID: "a", Head: head})
	if o := r.result(first); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	again := func(n string) Outcome {
		task, err := r.author.Submit(t.Context(), clientSpec(Submission{ID: "a", Head: head}, n))
		if err != nil {
			t.Fatal(err)
		}
		return r.result(task.ID)
	}
	if o := again("1"); o.Code != Returned || o.Reason != WhyPolicy {
		t.Errorf("%+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.run("update-ref", "refs/heads/main", r.begin)
	r.start(r.config("merger-2"))
	if o := again("2"); o.Code != Landed {
		t.Errorf("%+v", o)
	}
}

func clientSpec(s Submission, id string) client.TaskSpec {
	return client.TaskSpec{Queue: web.Queue(), Payload: s, ID: id}
}
