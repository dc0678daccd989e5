package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Rescue is what Workspace.Rescue took out.
type Rescue struct {
	Deleted
	// Commits counts those that the source has not, and Lost those that lack objects.
	Commits, Lost int
}

// Rescue takes the work of a workspace out, also where its git directory is broken or hostile: the objects of all
// commits that are whole, and the files as they are. It reads no setting, index, ref or link of the agent's, and
// removes nothing. The work is saved in the source as Delete saves it.
func (w *Workspace) Rescue(ctx context.Context) (*Rescue, error) {
	d := new(Rescue)
	d.Had = "what could be read"
	n, lost, err := w.salvageAll(ctx, &d.Deleted)
	d.Commits, d.Lost = n, lost
	return d, err
}

// salvage does the same for Delete.
func (w *Workspace) salvage(ctx context.Context, d *Deleted) error {
	_, _, err := w.salvageAll(ctx, d)
	return err
}

func (w *Workspace) salvageAll(ctx context.Context, d *Deleted) (commits, lost int, err error) {
	dir, err := os.MkdirTemp(w.dir, "rescue-*")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	if err := w.bareGit(dir, w.store()); err != nil {
		return 0, 0, err
	}
	s := &git.Repository{Dir: dir, Env: w.Author.env()}
	// The agent's own objects are alone in a store, so that they can be listed.
	own := filepath.Join(dir, "own")
	if err := w.copyObjects(ctx, s, own); err != nil {
		return 0, 0, err
	}
	alone := *s
	alone.Objects = own
	list, err := alone.Output(
		ctx, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectname)",
	)
	if err != nil {
		return 0, 0, err
	}
	s.Alternates = []string{own}
	tips, commits, lost, err := w.whole(ctx, s, list)
	if err != nil {
		return 0, 0, err
	}
	message := fmt.Sprintf(
		"Rescued workspace %s/%s\n\nIts %d commits are reached by the parents.\n", w.Repo, w.Name, commits,
	)
	head := w.headHint()
	if _, err := s.Output(ctx, "cat-file", "-e", "--end-of-options", head+"^{tree}"); err != nil {
		head = w.Start
	}
	parents := append([]string{w.Start}, tips...)
	for len(parents) > maxParents {
		join, err := w.join(ctx, s, w.Start, "More rescued commits", parents[len(parents)-maxParents:])
		if err != nil {
			return 0, 0, err
		}
		parents = append(parents[:len(parents)-maxParents], join)
	}
	tree, lacks, err := w.salvageFiles(ctx, s)
	if err != nil {
		tree = head
		lacks = "the files (" + firstLines(err.Error(), 1) + ")"
	}
	if lacks != "" {
		d.Had += ", without " + lacks
	}
	commit, err := w.join(ctx, s, tree, message, parents)
	if err != nil {
		return 0, 0, err
	}
	// A fetch reads the git directory alone.
	if _, err := s.Feed(
		ctx, []byte(commit+"\n^"+w.Start+"\n"), "pack-objects", "--revs", "--quiet",
		filepath.Join(dir, "objects", "pack", "pack"),
	); err != nil {
		return 0, 0, err
	}
	s.Alternates = nil
	return commits, lost, w.save(ctx, s, commit, nil, d)
}

// headHint is the commit that HEAD names, if it can be read so simply, or "".
func (w *Workspace) headHint() string {
	root, err := os.OpenRoot(w.GitDir())
	if err != nil {
		return ""
	}
	defer root.Close()
	name := "HEAD"
	for range 2 {
		text, err := readRegular(root, name, bounds["HEAD"])
		line := strings.TrimSpace(string(text))
		if ref, ok := strings.CutPrefix(line, "ref: "); ok && err == nil && git.CheckRef(ref) == nil {
			name = ref
		} else if err == nil && git.CheckObject(line) == nil {
			return line
		}
	}
	return ""
}

// copyObjects copies the objects of the private git directory into a store of ours, each checked by its content.
func (w *Workspace) copyObjects(ctx context.Context, s *git.Repository, own string) error {
	if err := os.MkdirAll(filepath.Join(own, "pack"), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(w.GitDir())
	if err != nil {
		return nil // there is none
	}
	defer root.Close()
	into := *s
	into.Objects, into.Alternates = own, []string{w.store()}
	return walk(root, "objects", func(name string, e fs.DirEntry) (bool, error) {
		if e.IsDir() {
			return true, ctx.Err()
		}
		if !e.Type().IsRegular() || strings.HasPrefix(name, "objects/info/") {
			return false, nil
		}
		pack := strings.HasSuffix(name, ".pack")
		if strings.HasPrefix(name, "objects/pack/") && !pack {
			return false, nil
		}
		f, err := openRegular(root, name, maxPack)
		if err != nil {
			return false, nil // it vanished, or is not what it was
		}
		defer f.Close()
		if pack {
			_, err := into.Run(ctx, git.Call{
				Args: []string{"index-pack", "--stdin", "--fix-thin"}, In: f, Answers: []int{128},
			})
			return false, err
		}
		return false, copyLoose(f, filepath.Join(own, filepath.FromSlash(strings.TrimPrefix(name, "objects/"))))
	})
}

// copyLoose copies a file that may be an object. Git compares its content with its name when it reads it.
func copyLoose(from io.Reader, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// whole finds, in a list of objects, the commits that no other one of them has as a parent, and that have all of their
// objects.
func (w *Workspace) whole(
	ctx context.Context, s *git.Repository, list string,
) (tips []string, commits, lost int, err error) {
	var all []string
	for line := range strings.SplitSeq(list, "\n") {
		if id, ok := strings.CutPrefix(line, "commit "); ok && git.CheckObject(id) == nil {
			all = append(all, id)
		}
	}
	parent := map[string]bool{}
	good := map[string]bool{}
	process, err := s.Start(ctx, git.Call{Args: []string{"cat-file", "--batch"}})
	if err != nil {
		return nil, 0, 0, err
	}
	defer process.Close()
	for _, id := range all {
		fmt.Fprintln(process.In, id)
		header, err := process.Out.ReadString('\n')
		if err != nil {
			return nil, 0, 0, process.Fail(err)
		}
		var kind string
		var size int64
		if n, _ := fmt.Sscanf(strings.TrimPrefix(header, id), " %s %d", &kind, &size); n != 2 {
			continue // damaged
		}
		body, err := io.ReadAll(io.LimitReader(process.Out, size+1))
		if err != nil {
			return nil, 0, 0, process.Fail(err)
		}
		good[id] = true
		for line := range strings.Lines(string(body)) {
			if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "parent "); ok {
				parent[p] = true
			} else if line == "\n" {
				break
			}
		}
	}
	// A commit that lacks objects is left out, and its parents are tried in its place.
	next := all
	for {
		var failed []string
		for _, id := range next {
			if !good[id] || parent[id] {
				continue
			}
			_, err := s.Feed(ctx, []byte(id+"\n^"+w.Start+"\n"), "rev-list", "--objects", "--quiet", "--stdin")
			if failure, ok := errors.AsType[*git.Error](err); ok && failure.Exit > 0 {
				failed = append(failed, id)
				good[id] = false
				continue
			}
			if err != nil {
				return nil, 0, 0, err
			}
			tips = append(tips, id)
		}
		lost += len(failed)
		if len(failed) == 0 {
			break
		}
		parents, err := w.parentsOf(ctx, s, failed)
		if err != nil {
			return nil, 0, 0, err
		}
		for _, p := range parents {
			parent[p] = false
		}
		next = parents
	}
	return tips, len(all), lost, nil
}

func (w *Workspace) parentsOf(ctx context.Context, s *git.Repository, ids []string) (list []string, err error) {
	for _, id := range ids {
		text, err := s.Output(ctx, "cat-file", "commit", id)
		if err != nil {
			continue
		}
		for line := range strings.Lines(text) {
			if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "parent "); ok && git.CheckObject(p) == nil {
				list = append(list, p)
			} else if line == "\n" {
				break
			}
		}
	}
	return list, nil
}

// salvageFiles returns the tree of the files as they are, without a look at the agent's index, and what of them it
// lacks, "" if nothing. Git runs where the tree is seen, on a git directory of ours.
func (w *Workspace) salvageFiles(ctx context.Context, s *git.Repository) (tree, lacks string, err error) {
	dir, err := os.MkdirTemp(w.dir, "files-*")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	if err := w.bareGit(dir, w.store()); err != nil {
		return "", "", err
	}
	r, err := w.open(ctx, dir, Access{Config: []string{"core.bare=false"}})
	if err != nil {
		return "", "", err
	}
	if err := w.refuseLarge(""); err != nil {
		return "", "", err
	}
	if _, err := r.Git.Output(ctx, "read-tree", w.Start); err != nil {
		return "", "", err
	}
	add := []string{"add", "--all", "--sparse", "--ignore-errors", "--", "."}
	if w.Kind == Sparse {
		add[1] = "--no-all" // a file outside the folders is not removed
	}
	var without []string
	nested := w.findNested()
	for _, name := range nested { // of one without a commit git takes no file at all
		add = append(add, ":(exclude,top,literal)"+name)
	}
	if len(nested) > 0 {
		without = append(without, "git repositories inside it: "+strings.Join(nested[:min(len(nested), 4)], ", "))
	}
	added, err := r.Git.Run(ctx, git.Call{Args: add, Answers: []int{1}, Env: []string{"GIT_LITERAL_PATHSPECS=0"}})
	if err != nil {
		return "", "", err
	}
	if added.Exit != 0 {
		without = append(without, "what git cannot add ("+firstLines(added.Stderr, 1)+")")
	}
	if tree, err = r.Git.Output(ctx, "write-tree"); err != nil {
		return "", "", err
	}
	// The folder of the room was the agent's, too, while git ran there: its objects are taken as a pack.
	from, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := r.Git.Run(ctx, git.Call{
			Args: []string{"pack-objects", "--revs", "--stdout", "--quiet"},
			In:   strings.NewReader(tree + "\n^" + w.Start + "\n"), Out: to,
		})
		to.CloseWithError(err)
		packed <- err
	}()
	_, err = s.Run(ctx, git.Call{Args: []string{"index-pack", "--stdin", "--fix-thin"}, In: from})
	from.CloseWithError(err)
	return tree, strings.Join(without, ", "), errors.Join(<-packed, err)
}
