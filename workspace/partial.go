package workspace

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// checkWhole refuses a source that lacks objects of its history: a workspace has no way to fetch them. A partial clone
// is known by its settings, or by the marks of its packs, also of those that it borrows. One that has got all of its
// objects is as good as any other.
func (s *source) checkWhole(ctx context.Context) error {
	if !s.partial() {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	found := absence{stop: stop}
	result, err := s.repository().Run(ctx, git.Call{
		Args: []string{"rev-list", "--objects", "--all", "--missing=print"}, Out: &found,
		Env: []string{"GIT_NO_LAZY_FETCH=1"},
	})
	_, broken := errors.AsType[*git.Error](err)
	switch {
	case found.id == "" && err == nil && result.Exit == 0:
		return nil
	case found.id == "" && !broken:
		return err
	}
	return problem(
		CodeSource,
		"%s is a partial clone that lacks objects of its history, and a workspace cannot borrow those: fetch them with "+
			"`git fetch --refetch --no-filter`, or make a full clone", s.dir,
	)
}

// partial reports whether objects of the source may be missing because a remote repository has them.
func (s *source) partial() bool {
	for i := range s.settings {
		c := &s.settings[i]
		remote := strings.HasPrefix(c.name, "remote.")
		switch {
		case c.name == "extensions.partialclone",
			remote && strings.HasSuffix(c.name, ".partialclonefilter"),
			remote && strings.HasSuffix(c.name, ".promisor") && isTrue(c.value):
			return true
		}
	}
	for _, dir := range stores(filepath.Join(s.dir, "objects")) {
		marks, err := filepath.Glob(filepath.Join(escapeGlob(dir), "pack", "*.promisor"))
		if err != nil || len(marks) > 0 {
			return true
		}
	}
	return false
}

// isTrue reads a truth value of git.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "", "false", "no", "off", "0":
		return false
	}
	return true
}

// absence looks for the first object that rev-list marks as missing, and ends it there.
type absence struct {
	stop context.CancelFunc
	id   string
	rest []byte
}

func (a *absence) Write(p []byte) (int, error) {
	text := append(a.rest, p...)
	for a.id == "" {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		if text = rest; len(line) > 0 && line[0] == '?' {
			a.id = string(line[1:])
			a.stop()
		}
	}
	a.rest = append(a.rest[:0], text...)
	return len(p), nil
}
