package bench

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// mergeWork is a bare repository with a branch main, and submissions on its first commit.
//
//	src/d1/e2/part00123.txt    files that submissions edit
//	api/defs/name03            a definition
//	api/calls/s0007/name03     a call of it, by submission s0007
//
// A tree is red if it has a call without its definition.
type mergeWork struct {
	dir   string // of this run
	repo  git.Repository
	first string // the commit that main begins with
	list  []change
}

// change is one submission.
type change struct {
	id, head string
	files    map[string]string // content by path; "" deletes
}

const (
	mergeRef = "refs/heads/main"
	defsDir  = "api/defs/"
	callsDir = "api/calls/"
)

func part(i int) string { return fmt.Sprintf("src/d%d/e%d/part%05d.txt", i%20, i/20%50, i) }

// partText is a file, with a line that submissions edit.
func partText(i int, line string) string {
	const around = 5
	return fmt.Sprintf(
		"part %d\n%s%s\n%s", i, strings.Repeat("a line before\n", around), line, strings.Repeat("a line behind\n", around),
	)
}

// times is how many submissions a share is: at least one, unless the share is 0.
func times(share float64, n int) int {
	if share == 0 {
		return 0
	}
	return max(1, int(math.Round(share*float64(n))))
}

// newMergeWork makes a repository, and the same submissions for the same load.
func newMergeWork(ctx context.Context, dir string, m Merge) (*mergeWork, error) {
	bare := filepath.Join(dir, "bench.git")
	if _, err := new(git.Repository).Output(ctx, "init", "--quiet", "--bare", bare); err != nil {
		return nil, err
	}
	w := &mergeWork{dir: dir, repo: git.Repository{Dir: bare}, list: changes(m)}
	base := map[string]string{}
	for i := range m.Files {
		base[part(i)] = partText(i, "as it was")
	}
	for i := range times(m.Bad, m.Submissions) {
		base[defsDir+defName(i)] = "define " + defName(i) + "\n"
	}
	base[callsDir+"none"] = "a call is a file in a folder of its submission\n"
	var in bytes.Buffer
	feedCommit(&in, mergeRef, base, "")
	for i := range w.list {
		feedCommit(&in, "refs/interlock/sub/"+w.list[i].id, w.list[i].files, mergeRef)
	}
	if _, err := w.repo.Feed(ctx, in.Bytes(), "fast-import", "--quiet"); err != nil {
		return nil, err
	}
	refs, err := w.repo.Output(ctx, "for-each-ref", "--format=%(refname) %(objectname)")
	if err != nil {
		return nil, err
	}
	heads := map[string]string{}
	for line := range strings.Lines(refs) {
		ref, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		heads[ref] = id
	}
	w.first = heads[mergeRef]
	for i := range w.list {
		w.list[i].head = heads["refs/interlock/sub/"+w.list[i].id]
	}
	return w, nil
}

func defName(i int) string { return fmt.Sprintf("name%02d", i) }

// changes are the submissions: pairs that conflict, pairs that are bad together, and others, in a mixed order.
func changes(m Merge) []change {
	n := m.Submissions
	list := make([]change, n)
	for i := range list {
		line := fmt.Sprintf("changed by s%04d", i)
		list[i] = change{id: fmt.Sprintf("s%04d", i), files: map[string]string{
			part(i): partText(i, line), part(n + i): partText(n+i, line),
		}}
	}
	order := rand.New(rand.NewPCG(24, 24)).Perm(n)
	pair := func() (earlier, later int, ok bool) {
		if len(order) < 2 {
			return 0, 0, false
		}
		earlier, later = min(order[0], order[1]), max(order[0], order[1])
		order = order[2:]
		return earlier, later, true
	}
	for range times(m.Conflicts, n) {
		if earlier, later, ok := pair(); ok {
			delete(list[later].files, part(later))
			list[later].files[part(earlier)] = partText(earlier, fmt.Sprintf("changed by s%04d", later))
		}
	}
	for i := range times(m.Bad, n) {
		if earlier, later, ok := pair(); ok {
			list[earlier].files[defsDir+defName(i)] = ""
			list[earlier].files[defsDir+defName(i)+"-renamed"] = "define " + defName(i) + " again\n"
			list[later].files[callsDir+list[later].id+"/"+defName(i)] = "call it\n"
		}
	}
	return list
}

// feedCommit writes a commit for git fast-import.
func feedCommit(in *bytes.Buffer, ref string, files map[string]string, from string) {
	fmt.Fprintf(in, "commit %s\ncommitter Agent <agent@localhost> 1700000000 +0000\ndata 6\nchange\n", ref)
	if from != "" {
		fmt.Fprintf(in, "from %s\n", from)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if text := files[path]; text == "" {
			fmt.Fprintf(in, "D %s\n", path)
		} else {
			fmt.Fprintf(in, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
		}
	}
	in.WriteString("\n")
}

// red looks at the tree of a commit, as a check does.
func (w *mergeWork) red(ctx context.Context, commit string) (bool, error) {
	out, err := w.repo.Output(ctx, "ls-tree", "-r", "--name-only", commit, "--", "api/")
	if err != nil {
		return false, err
	}
	paths := map[string]bool{}
	for path := range strings.FieldsSeq(out) {
		paths[path] = true
	}
	for path := range paths {
		call, ok := strings.CutPrefix(path, callsDir)
		if _, name, called := strings.Cut(call, "/"); ok && called && !paths[defsDir+name] {
			return true, nil
		}
	}
	return false, nil
}

// audit counts the red commits of main, and the changes that were accepted and are not in its last tree.
func (w *mergeWork) audit(ctx context.Context, accepted []change) (red, lost int, err error) {
	out, err := w.repo.Output(ctx, "rev-list", "--first-parent", w.first+".."+mergeRef)
	if err != nil {
		return 0, 0, err
	}
	for commit := range strings.FieldsSeq(out) {
		bad, err := w.red(ctx, commit)
		if err != nil {
			return 0, 0, err
		}
		if bad {
			red++
		}
	}
	if out, err = w.repo.Output(ctx, "ls-tree", "-r", mergeRef); err != nil {
		return 0, 0, err
	}
	blobs := map[string]string{}
	for line := range strings.Lines(out) {
		facts, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
		blobs[path] = facts[strings.LastIndexByte(facts, ' ')+1:]
	}
	for i := range accepted {
		for path, text := range accepted[i].files {
			if blobs[path] != blobID(text) {
				lost++
				break
			}
		}
	}
	return red, lost, nil
}

// blobID is the id of a file in git; "" for one that is deleted.
func blobID(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)))
}
