package merger

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/merge"
)

// verify compares the branch, the documents and what is computed anew. staged is what was once written down as staged.
func (r *rig) verify(c Config, staged *Staged) {
	r.t.Helper()
	ctx := r.t.Context()
	head := r.head()
	report, err := c.Boundary.(*merge.Boundary).Verify(ctx, head, 0, nil)
	if err != nil || len(report.Findings) > 0 {
		r.t.Errorf("verify: %+v, %v", report, err)
	}
	var target Target
	if _, err := read(ctx, r.author, web.Key(), &target); err != nil || target.Head != head || target.Staged != nil {
		r.t.Errorf("the target's document is %+v, %v, and the head %s", target, err, head)
	}
	var got []string
	parent := r.begin
	for n := uint64(1); n <= target.Sequence; n++ {
		var landing Landing
		var record Record
		if ok, err := read(ctx, r.author, web.LandingKey(n), &landing); err != nil || !ok {
			r.t.Fatalf("landing %d: %v, %v", n, ok, err)
		}
		if ok, err := read(ctx, r.author, web.RecordKey(landing.Submission), &record); err != nil || !ok {
			r.t.Fatalf("the record of %s: %v, %v", landing.Submission, ok, err)
		}
		again, err := c.Boundary.Land(ctx, new(Merger).turn(&record, parent, n, landing.Checks))
		if err != nil || again.Commit != landing.Commit || landing.Parent != parent {
			r.t.Errorf("landing %d is %+v, and computed anew %+v, %v", n, landing, again, err)
		}
		got, parent = append(got, landing.Commit), landing.Commit
	}
	if parent != head {
		r.t.Errorf("the last landing is %s, and the head %s", parent, head)
	}
	if staged != nil {
		for _, landing := range staged.Landings {
			if landing.Sequence > target.Sequence || got[landing.Sequence-1] != landing.Commit {
				r.t.Errorf("landing %+v was staged, and %v landed", landing, got)
			}
		}
	}
	position, err := c.Target.Read(ctx)
	if err != nil || position.Fence.Commit != head || position.Fence.Sequence != target.Sequence {
		r.t.Errorf("the fence is %+v, %v, and the head %s, number %d", position, err, head, target.Sequence)
	}
	_ = filepath.WalkDir(filepath.Join(r.git.Dir, "refs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".lock") {
			r.t.Errorf("%s is left, %v", path, err)
		}
		return nil
	})
}
