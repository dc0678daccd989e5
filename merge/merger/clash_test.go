package merger

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/interlockdev/interlock"
)

// taken waits until a merger has a submission in line, and returns its record.
func (r *rig) taken(task interlock.TaskID, s Submission) Record {
	r.t.Helper()
	for {
		record, found, err := Standing(r.t.Context(), r.author, web, task, s)
		if err != nil {
			r.t.Fatal(err)
		}
		if found {
			return record
		}
	}
}

// A submission has in its record which of those in line it conflicts with. Those have the records that they had.
func TestClashesAreToldAtSubmission(t *testing.T) {
	r := newRig(t)
	r.start(r.config("merger")) // and no worker, so that all stay in line
	enter := func(id, path, text string) Record {
		s := Submission{ID: id, Head: r.commit(r.begin, files{path: text})}
		return r.taken(r.submit(s), s)
	}
	first := enter("first", "README", "one\n2\nthree\n")
	enter("apart", "other", "1\n")
	same := enter("same", "README", "one\ntwo\n3\nfour\n")
	second := enter("second", "README", "one\nzwei\nthree\n")
	below := enter("below", "other/file", "1\n")
	if len(first.Clashes) != 0 {
		t.Errorf("the first one clashes with %+v", first.Clashes)
	}
	clash := func(id string, path string) Clash {
		return Clash{Submission: id, Agent: "author", Purpose: "change " + id, Ahead: true, Paths: []string{path}}
	}
	if want := []Clash{clash("same", "README"), clash("first", "README")}; !reflect.DeepEqual(second.Clashes, want) {
		t.Errorf("the second one clashes with %+v, want %+v", second.Clashes, want)
	}
	if want := []Clash{clash("first", "README")}; !reflect.DeepEqual(same.Clashes, want) {
		t.Errorf("a change of the line beside it clashes with %+v, want %+v", same.Clashes, want)
	}
	if len(below.Clashes) != 1 || below.Clashes[0].Submission != "apart" {
		t.Errorf("a file in the place of a folder: %+v", below.Clashes)
	}
	var now Record
	if _, err := read(t.Context(), r.author, web.RecordKey("first"), &now); err != nil || !reflect.DeepEqual(now, first) {
		t.Errorf("the record of the first one is %+v, %v, and was %+v", now, err, first)
	}
}

// A submission that comes back to its place has those behind it, too.
func TestClashesBehind(t *testing.T) {
	r := newRig(t)
	c := r.config("merger")
	c.Train.Runners = 1
	r.work(good)
	stop := r.start(c)
	if o := r.result(r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"bad": "1\n"})})); o.Code != Returned {
		t.Fatalf("%+v", o)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c = r.config("merger-2")
	c.Checks = []string{"unit"} // without a worker
	r.start(c)
	b := Submission{ID: "b", Head: r.commit(r.begin, files{"README": "b\n"})}
	r.taken(r.submit(b), b)
	a := Submission{Resubmits: "a", Head: r.commit(r.begin, files{"README": "a\n"})}
	got := r.taken(r.submit(a), a)
	if len(got.Clashes) != 1 || got.Clashes[0].Submission != "b" || got.Clashes[0].Ahead {
		t.Errorf("%+v", got.Clashes)
	}
}

func TestMeets(t *testing.T) {
	for _, c := range []struct {
		a, b []string
		want bool
	}{
		{[]string{"a"}, []string{"a"}, true},
		{[]string{"a/b"}, []string{"a/c"}, false},
		{[]string{"a/b"}, []string{"a"}, true},
		{[]string{"a"}, []string{"a/b/c"}, true},
		{[]string{"ab"}, []string{"a"}, false},
		{nil, []string{"a"}, false},
	} {
		for _, pair := range [][2][]string{{c.a, c.b}, {c.b, c.a}} {
			if got := newPathSet(pair[0]).meets(pair[1]); got != c.want {
				t.Errorf("%s: %v, want %v", fmt.Sprint(pair), got, c.want)
			}
		}
	}
}
