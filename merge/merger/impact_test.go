package merger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/merge/train"
)

func TestImpactMap(t *testing.T) {
	m, err := ParseImpactMap("# path impacts\n\napi/ api\ndocs/ docs site\napi/v2/ v2\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ paths, want string }{
		{"api/a.go", "api"},
		{"api/v2/a.go api/b", "api v2"},
		{"docs/x docs/y", "docs site"},
		{"docs/x Makefile", ""},
		{"", ""},
	} {
		if got := strings.Join(m.Of(strings.Fields(c.paths)), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.paths, got, c.want)
		}
	}
	for _, bad := range []string{"", "# x\n", "api/\n"} {
		if _, err := ParseImpactMap(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	if list, err := ReadImpacts("b\n\n a \nb"); err != nil || !slices.Equal(list, []string{"a", "b"}) {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := ReadImpacts(strings.Repeat("x", 300)); err == nil {
		t.Error("a long line is read")
	}
}

// Submissions with disjoint impacts do not wait for each other, and what lands unchecked as it is is marked. One with
// unknown impacts waits for all before it.
func TestLanesByImpact(t *testing.T) {
	r := newRig(t)
	gate := make(chan struct{})
	r.work(func(tree files) bool {
		if _, api := tree["api/a"]; api {
			<-gate
		}
		return true
	})
	c := r.config("merger")
	c.Train = train.Config{Runners: 4, Lanes: true, WholeEvery: 1}
	m, err := ParseImpactMap("api/ api\nweb/ web\n")
	if err != nil {
		t.Fatal(err)
	}
	c.Impacts = func(_ context.Context, c Change) ([]string, error) {
		if c.Submission == "broken" {
			return []string{"web"}, errors.New("no build file")
		}
		return m.Of(c.Paths), nil
	}
	r.start(c)
	submit := func(id, path string) func() Outcome {
		s := Submission{ID: id, Head: r.commit(r.begin, files{path: id + "\n"}), Impacts: []string{"the author's word"}}
		task := r.submit(s)
		for r.taken(task, s).Measured == false { // the line has its impacts
		}
		return func() Outcome { return r.result(task) }
	}
	api := submit("api", "api/a")
	web := submit("web", "web/a")
	if o := web(); o.Code != Landed || o.Landing.Sequence != 1 {
		t.Errorf("web waits for api: %+v", o)
	}
	broken := submit("broken", "web/b")
	close(gate)
	if o := api(); o.Code != Landed || !o.Landing.Apart {
		t.Errorf("api was checked before web had landed, and is not marked: %+v", o.Landing)
	}
	if o := broken(); o.Code != Landed || o.Landing.Sequence != 3 {
		t.Errorf("what can affect everything: %+v", o)
	}
}
