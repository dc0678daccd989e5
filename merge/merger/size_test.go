package merger

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/merge"
)

// A batch with more bytes than one commit may have lands at once, as one of small submissions does.
func TestLargeBatch(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	tree := files{}
	for i := range 40 {
		tree[fmt.Sprintf("%s/%d", strings.Repeat("d", 200), i)] = "x\n"
	}
	var tasks []interlock.TaskID
	var heads []string
	for i := range 18 {
		changes := files{}
		for path := range tree {
			changes[fmt.Sprintf("%d/%s", i, path)] = "x\n"
		}
		heads = append(heads, r.commit(r.begin, changes))
		tasks = append(tasks, r.submit(Submission{
			ID: fmt.Sprintf("s-%02d", i), Head: heads[i], Message: strings.Repeat("m", maxMessage-1),
		}))
	}
	c := r.config("merger")
	c.Train.FirstBatch = 18
	r.start(c)
	for i, task := range tasks {
		if o := r.result(task); o.Code != Landed || len(o.Landing.Paths)+o.Landing.More != 40 {
			t.Errorf("%d: %+v", i, o)
		}
	}
	if got := r.landings(); len(got) != 18 {
		t.Errorf("landed %v", got)
	}
	r.waitHealth(func(h *Health) bool { return h.Failure == nil })
}

// An outcome fits into the result of its task, whatever is in it, and keeps its reason and a message.
func TestOutcomeFits(t *testing.T) {
	o := Outcome{Code: Returned, Reason: WhyConflict, Message: strings.Repeat("ü", 40<<10)}
	for i := range 1000 {
		o.Conflicts = append(o.Conflicts, Conflict{Conflict: merge.Conflict{
			Path: fmt.Sprint(strings.Repeat("d", 4000), i), Hunks: strings.Repeat("h", 100),
		}})
		o.Sequence = append(o.Sequence, strings.Repeat("s", 500))
		o.Checks = append(o.Checks, CheckResult{Name: fmt.Sprint(i % 20), Tail: strings.Repeat("ö", maxTail/2)})
	}
	o.Checks = o.Checks[:20]
	o.fit()
	n := len(encode(&o))
	if n > interlock.MaxResultBytes || len(o.Conflicts) == 0 || o.Message == "" || len(o.Checks) != 20 {
		t.Errorf("%d bytes, %d conflicts, %d checks", n, len(o.Conflicts), len(o.Checks))
	}
	if !json.Valid(encode(&o)) {
		t.Error("it is no JSON")
	}
}
