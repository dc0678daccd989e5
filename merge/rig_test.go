package merge

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
)

// rig is a bare repository that a test fills.
type rig struct {
	t    testing.TB
	git  git.Repository
	made int
}

func newRig(t testing.TB, options ...string) *rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "web.git")
	args := append([]string{"init", "--quiet", "--bare"}, options...)
	if _, err := new(git.Repository).Output(t.Context(), append(args, dir)...); err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, git: git.Repository{Dir: dir, Config: []string{"core.fsync=none"}}}
}

// run runs git and returns its output.
func (r *rig) run(args ...string) string {
	r.t.Helper()
	out, err := r.git.Output(r.t.Context(), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// file is a file of a commit. Its zero value deletes the path.
type file struct{ mode, text string }

func text(s string) file { return file{"100644", s} }

type files map[string]file

// commit makes a commit that changes files of its first parent, and returns its id.
func (r *rig) commit(changes files, parents ...string) string {
	r.t.Helper()
	var b stream
	r.made++
	b.commit(r.made, fmt.Sprintf("commit %d", r.made), changes, parents...)
	return r.load(&b)[r.made]
}

// load runs a stream, and returns the commits by their marks.
func (r *rig) load(b *stream) map[int]string {
	r.t.Helper()
	marks := filepath.Join(r.t.TempDir(), "marks")
	_, err := r.git.Feed(r.t.Context(), b.Bytes(), "fast-import", "--quiet", "--force", "--export-marks="+marks)
	if err != nil {
		r.t.Fatal(err)
	}
	list, err := os.ReadFile(marks)
	if err != nil {
		r.t.Fatal(err)
	}
	ids := map[int]string{}
	for line := range strings.Lines(string(list)) {
		var mark int
		var id string
		if _, err := fmt.Sscanf(line, ":%d %s", &mark, &id); err != nil {
			r.t.Fatal(err)
		}
		ids[mark] = id
	}
	return ids
}

// stream is the input of git fast-import.
type stream struct{ bytes.Buffer }

// commit adds a commit. A parent is an id, or a mark such as ":3".
func (s *stream) commit(mark int, message string, changes files, parents ...string) {
	fmt.Fprintf(s, "commit refs/heads/made-%d\nmark :%d\n", mark, mark)
	for _, role := range []string{"author", "committer"} {
		fmt.Fprintf(s, "%s Ada <ada@example.org> %d +0200\n", role, 1000+mark)
	}
	fmt.Fprintf(s, "data %d\n%s\n", len(message), message)
	for i, p := range parents {
		fmt.Fprintf(s, "%s %s\n", []string{"from", "merge"}[min(i, 1)], p)
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
		switch f := changes[name]; {
		case f == file{}:
			fmt.Fprintf(s, "D %s\n", quoted)
		case f.mode == "160000":
			fmt.Fprintf(s, "M 160000 %s %s\n", f.text, quoted)
		default:
			fmt.Fprintf(s, "M %s inline %s\ndata %d\n%s\n", f.mode, quoted, len(f.text), f.text)
		}
	}
	s.WriteString("\n")
}

// boundary opens a boundary with the profile of this machine.
func (r *rig) boundary(drivers ...Driver) *Boundary {
	r.t.Helper()
	return r.open("", false, drivers...)
}

func (r *rig) open(attributes string, discard bool, drivers ...Driver) *Boundary {
	r.t.Helper()
	profile, err := NewProfile(r.t.Context(), attributes, drivers...)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := Open(r.t.Context(), Config{Repository: r.git.Dir, Profile: profile, Discard: discard})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return b
}

// turn is the n-th turn, with a head on a parent, and times made of n.
func turn(n int, parent, head string) Turn {
	return Turn{
		Submission: Submission{ID: fmt.Sprintf("q_%d", n), Head: head, Submitted: 1_700_000_000 + int64(n)},
		Sequence:   uint64(n), Parent: parent, Staged: 1_700_000_100 + int64(n),
	}
}

// land lands, and fails the test if that is refused.
func (r *rig) land(b *Boundary, t Turn) Landing {
	r.t.Helper()
	l, err := b.Land(r.t.Context(), t)
	if err != nil {
		r.t.Fatalf("landing %d: %v", t.Sequence, err)
	}
	return l
}

// refused lands, and fails the test unless that is refused.
func (r *rig) refused(b *Boundary, t Turn) *Refusal {
	r.t.Helper()
	l, err := b.Land(r.t.Context(), t)
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		r.t.Fatalf("landing %d: %+v, %v, want a refusal", t.Sequence, l, err)
	}
	return refusal
}

// list returns the files of a commit or tree: "MODE TEXT", by path.
func (r *rig) list(id string) map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for entry := range strings.SplitSeq(r.run("ls-tree", "-r", "-z", id), "\x00") {
		facts, path, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		f := strings.Fields(facts)
		content := f[2]
		if f[1] == "blob" {
			content = r.run("cat-file", "blob", f[2])
		}
		all[path] = f[0] + " " + content
	}
	return all
}
