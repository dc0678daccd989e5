package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// source is the repository that the workspace was made of. No agent writes its settings.
func (w *Workspace) source() *git.Repository {
	return &git.Repository{Dir: w.Source, Env: git.Remote(os.Environ())}
}

// UpstreamRef returns the id of the object at a ref of the upstream, "" if the ref is not there.
func (w *Workspace) UpstreamRef(ctx context.Context, ref string) (string, error) {
	out, err := w.source().Output(ctx, "ls-remote", "--end-of-options", w.Upstream, ref)
	if err != nil {
		return "", fmt.Errorf("the refs of %s cannot be read: %w", w.Upstream, err)
	}
	id, _, _ := strings.Cut(out, "\t")
	return id, nil
}

// SourceHas reports whether the repository that the workspace was made of has a commit.
func (w *Workspace) SourceHas(ctx context.Context, commit string) (bool, error) {
	if err := git.CheckObject(commit); err != nil {
		return false, err
	}
	_, err := w.source().Output(ctx, "cat-file", "-e", commit+"^{commit}")
	if _, absent := errors.AsType[*git.Error](err); absent {
		return false, nil
	}
	return err == nil, err
}
