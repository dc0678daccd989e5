package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// grafts is a file beside the workspace with parents that history lacks.
func (w *Workspace) grafts() string { return filepath.Join(w.dir, "grafts") }

// seeSquashes has r see the squashes of this workspace's own submissions as what they are: merges of the submitted
// commit. So a merge of the target finds the right base, and no conflict with what it has landed itself. A squash is
// recognised by the trailers of its landing, and only if they name a submission of this workspace with its commit.
func (w *Workspace) seeSquashes(ctx context.Context, r *git.Repository, tip string) error {
	if len(w.Submissions) == 0 {
		return nil
	}
	const format = "--format=%H%x00%P%x00%(trailers:key=Interlock-Submission,valueonly,separator=%x2C)%x00" +
		"%(trailers:key=Interlock-Head,valueonly,separator=%x2C)"
	out, err := r.Output(ctx, "log", "--first-parent", format, "HEAD.."+tip, "--")
	if err != nil {
		return err
	}
	var grafts strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		f := strings.Split(line, "\x00")
		if len(f) != 4 || git.CheckObject(f[1]) != nil || !slices.ContainsFunc(w.Submissions, func(s Submission) bool {
			return s.ID == f[2] && s.Head == f[3]
		}) {
			continue
		}
		inside, err := r.Run(ctx, git.Call{
			Args: []string{"merge-base", "--is-ancestor", "--end-of-options", f[3], "HEAD"}, Answers: []int{1},
		})
		if err != nil {
			return err
		}
		if inside.Exit == 0 {
			fmt.Fprintf(&grafts, "%s %s %s\n", f[0], f[1], f[3])
		}
	}
	if grafts.Len() == 0 {
		return nil
	}
	// In place: a sandbox has the file already.
	if err := os.WriteFile(w.grafts(), []byte(grafts.String()), 0o600); err != nil {
		return err
	}
	r.Env = append(slices.Clone(r.Env), "GIT_GRAFT_FILE="+w.grafts())
	r.Config = append(slices.Clone(r.Config), "advice.graftFileDeprecated=false", "core.commitGraph=false")
	return nil
}
