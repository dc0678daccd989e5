package workspace

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxNested is how many repositories inside a tree are looked at.
const maxNested = 1000

// nested lists the repositories inside the tree that have work: ones that git ignores, submodules, and all others. A
// clone without commits of its own, and a submodule at a commit of its remote, has none.
func (w *Workspace) nested(ctx context.Context, r *Room) (list []string, err error) {
	found := w.findNested()
	if len(found) == 0 {
		return nil, nil
	}
	var out strings.Builder
	if err := r.Run(
		ctx, strings.NewReader(strings.Join(found, "\x00")+"\x00"), &writeLimit{to: &out, left: maxFacts},
		"xargs", "-0", "sh", "-c", nestedScript, "sh",
	); err != nil {
		return nil, w.gitFailed(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		if name != "" {
			list = append(list, name)
		}
	}
	return list, nil
}

// nestedScript prints the repositories that have work: files that no commit has, or commits that no remote has.
const nestedScript = `unset GIT_DIR GIT_WORK_TREE; export GIT_CEILING_DIRECTORIES="$PWD"
for f; do
	if n=$(git -C "./$f" rev-list --count --all --reflog --not --remotes -- 2>/dev/null) && [ "$n" = 0 ] &&
		s=$(git -C "./$f" status --porcelain 2>/dev/null) && [ -z "$s" ]; then
		continue
	fi
	printf '%s\0' "$f"
done`

// findNested lists the folders in the tree that have a .git. It follows no link, and looks into the changed files of an
// overlay alone: its base has none.
func (w *Workspace) findNested() (list []string) {
	dir := w.Path()
	if w.Kind == Overlay {
		dir = w.upper()
	}
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil
	}
	defer root.Close()
	_ = walk(root, ".", func(name string, e fs.DirEntry) (bool, error) {
		if e.Name() != ".git" {
			return e.IsDir(), nil
		}
		if at := path.Dir(name); at != "." {
			list = append(list, at)
		}
		if len(list) == maxNested {
			return false, fs.SkipAll
		}
		return false, nil
	})
	return list
}
