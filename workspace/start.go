package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// upstream is where the target is taken from, and submissions go: the source unless another repository was named.
func (p *Plan) upstream() (string, error) {
	switch named := p.opts.Upstream; {
	case named == "":
		return p.source.dir, nil
	case exists(named):
		return filepath.Abs(named)
	default:
		return named, nil
	}
}

// submissionOf returns the ID of a submission that is named so, or was the last one of the workspace of that name.
func (h *Host) submissionOf(repo, named string) (id string, err error) {
	if named == "" {
		return "", nil
	}
	if err := CheckName("submission", named); err != nil {
		return "", err
	}
	w, err := h.Find(repo, named)
	switch {
	case errors.Is(err, ErrUnknown):
		return named, nil
	case err != nil:
		return "", err
	case len(w.Submissions) == 0:
		return "", problem(CodeSource, "workspace %s/%s has submitted nothing: nothing can build on it yet", repo, named)
	}
	return w.Submissions[len(w.Submissions)-1].ID, nil
}

// start is the commit that the target is at now, in the upstream, or that of the submission on. The source may not have
// it yet.
func (p *Plan) start(ctx context.Context, h *Host, upstream, on string) (string, error) {
	ref := "refs/heads/" + p.Target
	absent := problem(CodeSource, "%s has no branch %s: name another one with --target", upstream, p.Target)
	if on != "" {
		ref = submitRef(on)
		absent = problem(
			CodeSource, "%s has no submission %s: name one that is there, or its workspace, with --on", upstream, on,
		)
	}
	if err := git.CheckRef(ref); err != nil {
		return "", problem(CodeName, "%q cannot be a branch: %v", p.Target, err)
	}
	if upstream == p.source.dir {
		if on == "" {
			return p.source.commit(ctx, p.Target)
		}
		commit, err := p.source.repository().Output(ctx, "for-each-ref", "--format=%(objectname)", ref)
		if err == nil && commit == "" {
			err = absent
		}
		return commit, err
	}
	r := git.Repository{Folder: h.Root, Env: git.Remote(os.Environ())}
	out, err := r.Output(ctx, "ls-remote", "--quiet", "--end-of-options", upstream, ref)
	if err != nil {
		return "", fmt.Errorf("%s could not be read from %s: %w", ref, upstream, err)
	}
	for line := range strings.SplitSeq(out, "\n") { // those of other names end with this one
		if commit, name, _ := strings.Cut(line, "\t"); name == ref && git.CheckObject(commit) == nil {
			return commit, nil
		}
	}
	return "", absent
}

// take makes sure that the source has the commit Start, and keeps it.
func (w *Workspace) take(ctx context.Context, s *source) error {
	if w.Upstream != w.Source && !s.has(ctx, w.Start) {
		r := git.Repository{Dir: s.dir, Env: git.Remote(os.Environ())}
		if _, err := r.Output(
			ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--end-of-options", w.Upstream,
			"+"+w.Start+":"+w.keepRef(w.Start),
		); err != nil {
			return fmt.Errorf("the target could not be fetched from %s: %w", w.Upstream, err)
		}
		return nil
	}
	return w.keep(ctx, w.Start)
}

// has reports whether the source has a commit.
func (s *source) has(ctx context.Context, commit string) bool {
	_, err := s.repository().Output(ctx, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// tellSource notes what the user's checkout has that the workspace has not.
func (w *Workspace) tellSource(ctx context.Context, s *source) {
	note := func(format string, args ...any) { w.Notes = append(w.Notes, fmt.Sprintf(format, args...)) }
	if changed, untracked := s.uncommitted(ctx); changed+untracked > 0 {
		dirty := Status{Changed: changed, Untracked: untracked}
		note("%s has %s that the workspace has not: commit them there if the work needs them", s.tree, &dirty)
	}
	branch := "refs/heads/" + w.Target
	if w.Upstream != w.Source {
		if w.On != "" {
			return // it has not taken the target in
		}
		if n := s.count(ctx, w.Start+".."+branch); n > 0 {
			note("%s of %s has %s that %s has not: push them if the work needs them",
				w.Target, s.dir, plural(n, "commit"), w.Upstream)
		}
		return
	}
	follows, err := s.repository().Output(ctx, "for-each-ref", "--format=%(upstream)", branch)
	if err != nil || follows == "" {
		return
	}
	if n := s.count(ctx, branch+".."+follows); n > 0 {
		note("%s is %s behind %s, as it was fetched last: git pull in %s, or use --upstream",
			w.Target, plural(n, "commit"), strings.TrimPrefix(follows, "refs/remotes/"), s.dir)
	}
}

// count counts the commits of a range, 0 if git fails.
func (s *source) count(ctx context.Context, span string) int {
	out, err := s.repository().Output(ctx, "rev-list", "--count", "--end-of-options", span, "--")
	n, _ := strconv.Atoi(out)
	if err != nil {
		return 0
	}
	return n
}

// uncommitted counts the files of the user's checkout that no commit has. No filter runs for it: a file that one would
// convert, and that may be the same, does not count.
func (s *source) uncommitted(ctx context.Context) (changed, untracked int) {
	if s.tree == "" {
		return 0, 0
	}
	r := s.here()
	r.Config = s.withoutFilters()
	out, err := r.Output(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
	if err != nil {
		return 0, 0
	}
	var paths []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		switch {
		case len(entry) < 4:
		case entry[:2] == "??":
			untracked++
		default:
			paths = append(paths, entry[3:])
		}
	}
	filtered, err := filters(ctx, r, paths, false)
	if err != nil {
		return 0, 0
	}
	return len(paths) - len(filtered), untracked
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
