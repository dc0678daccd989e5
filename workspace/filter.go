package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// The agent's git has what the user's has, in files that each command writes anew: see refresh.
//
//	attributes           the attributes of the machine and the user, for git in a room; no agent sees or writes it
//	git/interlock.config settings and drivers, which git/config includes
//	git/info/attributes  that of the source
//	git/git-crypt        such as the keys of git-crypt, as the source has them
const (
	attributesFile = "attributes"
	agentConfig    = "interlock.config"
)

// converting returns the conversions of the user, as they are now. A source that is gone has none.
func (w *Workspace) converting(ctx context.Context) (*conversions, error) {
	if !exists(w.Source) {
		return &conversions{}, nil
	}
	at := w.Source
	if w.Checkout != "" && exists(w.Checkout) {
		at = w.Checkout
	}
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	if c, ok := w.host.converts[at]; ok {
		return c, nil
	}
	s, err := openSource(ctx, at)
	if err != nil {
		return nil, err
	}
	c, err := s.conversions(ctx)
	if err != nil {
		return nil, err
	}
	if w.host.converts == nil {
		w.host.converts = map[string]*conversions{}
	}
	w.host.converts[at] = c
	return c, nil
}

// refresh writes the conversions to where the agent's git finds them, and returns what git in a sandbox needs.
func (w *Workspace) refresh(c *conversions) (Access, error) {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return Access{}, err
	}
	defer root.Close()
	put := func(name string, content []byte) {
		if err != nil {
			return
		}
		old, missing := readRegular(root, name, int64(len(content)))
		if missing == nil && bytes.Equal(old, content) || len(content) == 0 && errors.Is(missing, fs.ErrNotExist) {
			return
		}
		err = (&view{root: root}).put(name, content, time.Now())
	}
	put(attributesFile, c.attributes)
	put("git/"+agentConfig, c.forAgent(filepath.Join(w.GitDir(), "info", "interlock-attributes")))
	put("git/info/interlock-attributes", c.attributes)
	put("git/info/attributes", c.info)
	if err != nil {
		return Access{}, err
	}
	for _, folder := range c.folders {
		if _, err := root.Lstat("git/" + folder); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := w.copyKeys(c.source, folder); err != nil {
			return Access{}, err
		}
	}
	a := Access{Config: c.strict(), Env: []string{"GIT_LFS_SKIP_DOWNLOAD_ERRORS=1"}, Read: slices.Clone(c.read)}
	if len(c.attributes) > 0 {
		a.Config = append(a.Config, "core.attributesFile="+filepath.Join(w.dir, attributesFile))
		a.Read = append(a.Read, filepath.Join(w.dir, attributesFile))
	}
	if c.source != nil {
		if store := c.source.largeStore(); exists(store) {
			a.Read = append(a.Read, store)
		}
	}
	return a, nil
}

// filterFailed makes a refusal of an error of git where a filter failed.
func (w *Workspace) filterFailed(ctx context.Context, err error) error {
	if _, _, driver := filterFailed(err); driver == "" {
		return err
	}
	c, readErr := w.converting(ctx)
	if readErr != nil {
		return readErr
	}
	return c.failed(err)
}

// maxKeys is how many bytes a folder with files of a filter has at most.
const maxKeys = 16 << 20

// copyKeys copies a folder of the source's git directory into the private one.
func (w *Workspace) copyKeys(s *source, folder string) error {
	use, err := diskUse(context.Background(), filepath.Join(s.dir, folder))
	if err != nil || use > maxKeys {
		return problem(CodeFilter, "%s has more than %d MiB, too much for a filter's keys: move it",
			filepath.Join(s.dir, folder), maxKeys>>20)
	}
	from, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(w.GitDir())
	if err != nil {
		return err
	}
	defer to.Close()
	return copyInto(from, to, folder)
}

// forAgent is the configuration for the agent's git.
func (c *conversions) forAgent(attributes string) []byte {
	var b bytes.Buffer
	b.WriteString("# Written by each command of Interlock, from the configuration of the user.\n")
	lines := c.strict()
	if len(c.attributes) > 0 {
		lines = append(lines, "core.attributesFile="+attributes)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		section, key := name, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			section, key = name[:i], name[i+1:]
		}
		section, sub, nested := strings.Cut(section, ".")
		b.WriteString("[" + section)
		if nested {
			b.WriteString(" " + quoteConfig(sub))
		}
		b.WriteString("]\n\t" + key + " = " + quoteConfig(value) + "\n")
	}
	return b.Bytes()
}

// usedAt returns the driver of each path of a commit that has one. No agent writes the git directory.
func (c *conversions) usedAt(ctx context.Context, gitDir, commit string, paths []string) (map[string]string, error) {
	r := git.Repository{Dir: gitDir}
	if paths == nil {
		out, err := r.Output(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
		if err != nil {
			return nil, err
		}
		paths = strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
		// Most repositories have no attributes at all.
		if !slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == ".gitattributes" }) &&
			len(c.attributes)+len(c.info) == 0 {
			return nil, nil
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "interlock-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r.Env = []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if _, err := r.Output(ctx, "read-tree", commit); err != nil {
		return nil, err
	}
	// What is in info/attributes of the source comes last, and is stronger than what the commit has. A git directory
	// has one file of that name, and it may be the agent's.
	at := filepath.Join(dir, "git")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(at, "info"), 0o700), os.MkdirAll(filepath.Join(at, "refs"), 0o700),
		os.WriteFile(filepath.Join(at, "info", "attributes"), c.info, 0o600),
		os.WriteFile(filepath.Join(at, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "attributes"), c.attributes, 0o600),
	); err != nil {
		return nil, err
	}
	if len(commit) == 64 {
		const config = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
		if err := os.WriteFile(filepath.Join(at, "config"), []byte(config), 0o600); err != nil {
			return nil, err
		}
	}
	r.Dir, r.Alternates, r.Objects = at, []string{filepath.Join(gitDir, "objects")}, filepath.Join(at, "objects")
	if err := os.MkdirAll(r.Objects, 0o700); err != nil {
		return nil, err
	}
	r.Config = append(slices.Clone(c.config), "core.attributesFile="+filepath.Join(dir, "attributes"))
	return filters(ctx, &r, paths, true)
}

// plainIn is how git is called to fill a folder of a new workspace, which no agent had yet: in a sandbox if a filter
// runs, else without any.
func (w *Workspace) plainIn(r git.Repository, folders ...string) *git.Repository {
	if w.access == nil {
		return &r
	}
	if !w.filtered {
		r.Config = append(r.Config, w.unfiltered...)
		return &r
	}
	r.Config = append(r.Config, w.access.Config...)
	r.Env = append(append(r.Env, "TMPDIR=/tmp"), w.access.Env...)
	box := sandbox.Config{
		Net: sandbox.NetOff, Read: slices.Concat(w.Borrowed(), gitPrefix(), w.access.Read), Write: folders,
	}
	r.Wrap = func(cmd *exec.Cmd) (func(), error) { return sandbox.Wrap(cmd, box) }
	return &r
}

// convert makes a new workspace convert files as the user's git does. It refuses a target with files that
// have a filter which cannot run.
func (w *Workspace) convert(ctx context.Context, s *source) error {
	c, err := s.conversions(ctx)
	if err != nil {
		return err
	}
	used, err := c.usedAt(ctx, w.GitDir(), w.Start, nil)
	if err != nil {
		return err
	}
	if err := c.check(used, w.host.sandboxed()); err != nil {
		return err
	}
	access, err := w.refresh(c)
	if err != nil {
		return err
	}
	w.access, w.filtered, w.drivers = &access, false, used
	for _, driver := range used {
		w.filtered = w.filtered || c.driver(driver) != nil && w.host.sandboxed()
	}
	w.unfiltered = c.without()
	if len(c.attributes) > 0 {
		w.unfiltered = append(w.unfiltered, "core.attributesFile="+filepath.Join(w.dir, attributesFile))
	}
	w.Converted, err = c.digestAt(ctx, w.GitDir(), w.Start, used)
	return err
}

// checkStaged refuses files in the index with a filter that is not defined.
func (r *Room) checkStaged(ctx context.Context) error {
	out, err := r.Git.Output(
		ctx, "diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=d", "-z", "HEAD", "--",
	)
	if err != nil || out == "" {
		return r.w.gitFailed(err)
	}
	used, err := filters(ctx, r.Git, strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), true)
	if err != nil {
		return r.w.gitFailed(err)
	}
	return r.conversions.check(used, r.view == nil)
}

// checkCommitted refuses commits with content that no filter has seen though one applies: the agent's git may have run
// without it. It knows such content by three signs: a path of Git LFS has no pointer; a blob of the range is the very
// file in the tree, and the filter would make something else of it; or the last commit has neither what the filter
// makes of the file, nor what becomes the file again.
func (r *Room) checkCommitted(ctx context.Context, head string) error {
	w, c := r.w, r.conversions
	v, err := w.vault(ctx)
	if err != nil {
		return err
	}
	tip, err := w.tip(ctx)
	if err != nil {
		return err
	}
	base, err := v.Output(ctx, "merge-base", head, tip)
	if err != nil {
		return err
	}
	blobs, err := broughtBlobs(ctx, v, head, base)
	if err != nil || len(blobs) == 0 {
		return err
	}
	used, err := c.usedAt(ctx, v.Dir, head, slices.Sorted(maps.Keys(blobs)))
	if err != nil {
		return err
	}
	if err := c.check(used, r.view == nil); err != nil {
		return err
	}
	large, err := c.large(ctx, v, used, head, "^"+base)
	if err != nil {
		return err
	}
	for _, path := range large.Others {
		if driver := used[path]; !c.allows(driver) {
			return c.unfiltered(driver, path)
		}
	}
	maps.DeleteFunc(used, func(_, driver string) bool {
		d := c.driver(driver)
		return d == nil || d.isLFS() || c.allows(driver)
	})
	return r.checkBlobs(ctx, v, head, used, blobs)
}

// broughtBlobs returns the blobs that commits bring to each path, and that of the last one.
func broughtBlobs(ctx context.Context, v *git.Repository, head, base string) (map[string][]string, error) {
	blobs := map[string][]string{}
	for _, args := range [][]string{
		{"log", "--no-merges", "--format=", base + ".." + head}, {"diff", base, head},
	} {
		out, err := v.Output(ctx, append(
			slices.Insert(args, 1, "-z", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=d"), "--",
		)...)
		if err != nil {
			return nil, err
		}
		// An entry is ":MODE MODE ID ID STATUS" and its path. The log has a separator more between commits.
		fields := strings.Split(out, "\x00")
		for i := 0; i+1 < len(fields); i++ {
			entry := strings.Fields(fields[i])
			if len(entry) == 5 && strings.HasPrefix(fields[i], ":") && strings.HasPrefix(entry[1], "100") {
				path := fields[i+1]
				blobs[path] = append(blobs[path], entry[3])
				i++
			}
		}
	}
	return blobs, nil
}

// unfiltered is about a file that was committed without its filter.
func (c *conversions) unfiltered(driver, path string) error {
	return problem(
		CodeFilter, "%s was committed without its filter %s: run git add --renormalize on it and amend the commit; where "+
			"several commits have it, squash them; or take files as they are by "+
			"git config --add interlock.allowUnfiltered %s in the repository", path, driver, driver,
	)
}

// presentScript prints the paths of its input that are files.
const presentScript = `for f; do if [ -f "$f" ] && [ ! -L "$f" ]; then printf '%s\0' "$f"; fi; done`

// checkBlobs compares the blobs of paths with their files in the tree. A path that is not there is left out: git has
// the file of a commit in a sparse checkout alone.
func (r *Room) checkBlobs(
	ctx context.Context, v *git.Repository, head string, used map[string]string, blobs map[string][]string,
) error {
	w, c := r.w, r.conversions
	if len(used) == 0 {
		return nil
	}
	var present strings.Builder
	in := strings.Join(slices.Sorted(maps.Keys(used)), "\x00") + "\x00"
	if err := r.Run(ctx, strings.NewReader(in), &present, "xargs", "-0", "sh", "-c", presentScript, "sh"); err != nil {
		return w.gitFailed(err)
	}
	paths := strings.Split(strings.TrimSuffix(present.String(), "\x00"), "\x00")
	paths = slices.DeleteFunc(paths, func(path string) bool { return used[path] == "" })
	if len(paths) == 0 {
		return nil
	}
	if i := slices.IndexFunc(paths, func(path string) bool { return strings.Contains(path, "\n") }); i >= 0 {
		return c.refuse(used[paths[i]], "its name has a line break", paths[i:i+1])
	}
	hash := func(in []byte, args ...string) ([]string, error) {
		out, err := r.Git.Feed(ctx, in, append([]string{"hash-object"}, args...)...)
		return strings.Split(out, "\n"), w.filterFailed(ctx, err)
	}
	list := []byte(strings.Join(paths, "\n") + "\n")
	clean, err := hash(list, "--stdin-paths")
	plain, plainErr := hash(list, "--no-filters", "--stdin-paths")
	if err = errors.Join(err, plainErr); err != nil {
		return err
	}
	if len(clean) != len(paths) || len(plain) != len(paths) {
		return w.broken("git fails in %s", w.GitDir())
	}
	for i, path := range paths {
		now, err := v.Output(ctx, "rev-parse", "--verify", "--quiet", head+":"+path)
		if err != nil {
			continue // it was deleted since
		}
		if clean[i] != plain[i] && slices.Contains(blobs[path], plain[i]) {
			return c.unfiltered(used[path], path)
		}
		if clean[i] == now {
			continue
		}
		// A filter may make another content each time, such as one that encrypts with a salt.
		smudged, err := r.Git.Run(ctx, git.Call{Args: []string{"cat-file", "--filters", head + ":" + path}})
		if err != nil {
			return c.unfiltered(used[path], path)
		}
		again, err := hash(smudged.Out, "--stdin", "--no-filters")
		if err != nil || again[0] != plain[i] || now == plain[i] {
			return c.unfiltered(used[path], path)
		}
	}
	return nil
}
