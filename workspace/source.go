package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// source is the repository that workspaces are made of.
type source struct {
	dir    string // the git directory, which linked worktrees share, absolute
	tree   string // the folder of its files, or "" for a bare one
	format string // of object ids
	name   string // what to call it in keys
	author Identity
	// prune is gc.pruneExpire in the source's own configuration, nil if it has none.
	prune *string
	// exclude is what the user or the repository ignores besides .gitignore.
	exclude []byte
}

// repository is how git is called in the source.
func (s *source) repository() *git.Repository { return &git.Repository{Dir: s.dir} }

// openSource looks at the repository that a path is in.
func openSource(ctx context.Context, path string) (*source, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Git looks for the repository of a folder; with GIT_DIR set it would not ask whether its owner is
	// trusted. So the question is asked once, here.
	discover := &git.Repository{Folder: path, Env: personal()}
	result, err := discover.Run(ctx, git.Call{
		Args: []string{
			"rev-parse", "--path-format=absolute", "--git-common-dir", "--show-object-format", "--is-bare-repository",
			"--show-toplevel", // it fails in a bare repository, behind the answers to the others
		},
		Answers: []int{128},
	})
	if err != nil {
		return nil, err
	}
	facts := strings.Split(strings.TrimSuffix(string(result.Out), "\n"), "\n")
	switch {
	case strings.Contains(result.Stderr, "dubious ownership"):
		return nil, problem(CodeSource, "%s belongs to another user: clone it, or add it to git's safe.directory", path)
	case len(facts) < 3:
		return nil, problem(CodeSource, "%s is in no git repository: name one with --repo", path)
	}
	s := &source{dir: facts[0], format: facts[1]}
	if facts[2] == "false" {
		if len(facts) != 4 {
			return nil, problem(CodeSource, "%s is inside a .git folder: name the folder above it", path)
		}
		s.tree = facts[3]
	}
	return s, s.configuration(ctx)
}

// branch is the branch that is checked out, or "".
func (s *source) branch(ctx context.Context) string {
	r := s.repository()
	if s.tree != "" {
		r = &git.Repository{Folder: s.tree} // a linked worktree has a HEAD of its own
	}
	name, _ := r.Output(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	return name
}

// personal is the environment in which git finds the user's own configuration.
func personal() (env []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	env = []string{"HOME=" + home}
	for _, file := range []string{
		os.Getenv("GIT_CONFIG_GLOBAL"), filepath.Join(home, ".gitconfig"),
		filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "git", "config"), filepath.Join(home, ".config", "git", "config"),
	} {
		if filepath.IsAbs(file) && exists(file) {
			return append(env, "GIT_CONFIG_GLOBAL="+file)
		}
	}
	return env
}

// configuration reads what the source's and the user's configuration tell of it.
func (s *source) configuration(ctx context.Context) error {
	r := s.repository()
	r.Env = personal()
	result, err := r.Run(ctx, git.Call{
		Args: []string{
			"config", "--null", "--show-scope", "--get-regexp",
			`^(user\.(name|email)|remote\.origin\.url|core\.excludesfile|extensions\.partialclone|gc\.pruneexpire)$`,
		},
		Answers: []int{1},
	})
	if err != nil {
		return err
	}
	origin, excludes := "", ""
	items := strings.Split(string(result.Out), "\x00")
	for i := 0; i+1 < len(items); i += 2 {
		scope := items[i]
		name, value, _ := strings.Cut(items[i+1], "\n")
		switch name {
		case "gc.pruneexpire":
			if scope == "local" {
				s.prune = &value
			}
		case "user.name":
			s.author.Name = value
		case "user.email":
			s.author.Email = value
		case "remote.origin.url":
			origin = value
		case "core.excludesfile":
			if value != os.DevNull { // what every call of git is given
				excludes = value
			}
		case "extensions.partialclone":
			return problem(
				CodeSource,
				"%s is a partial clone, so objects of it cannot be borrowed: fetch all of them, or make a full clone",
				s.dir,
			)
		}
	}
	s.name = NameFrom(lastPart(origin))
	if s.name == "" && s.tree != "" {
		s.name = NameFrom(filepath.Base(s.tree))
	}
	if s.name == "" {
		s.name = NameFrom(strings.TrimSuffix(filepath.Base(s.dir), ".git"))
	}
	home, _ := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(excludes, "~/"); ok {
		excludes = filepath.Join(home, rest)
	}
	if excludes == "" {
		excludes = filepath.Join(home, ".config", "git", "ignore")
	}
	for _, file := range []string{excludes, filepath.Join(s.dir, "info", "exclude")} {
		if content, err := os.ReadFile(file); err == nil {
			s.exclude = append(append(s.exclude, content...), '\n')
		}
	}
	return nil
}

// lastPart is the last part of a URL without .git.
func lastPart(url string) string {
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	return url[strings.LastIndexAny(url, "/:")+1:]
}

// commit returns the commit that a branch of the source is at.
func (s *source) commit(ctx context.Context, branch string) (string, error) {
	return branchCommit(ctx, s.repository(), branch)
}

func branchCommit(ctx context.Context, r *git.Repository, branch string) (string, error) {
	ref := "refs/heads/" + branch
	if err := git.CheckRef(ref); err != nil {
		return "", problem(CodeName, "%q cannot be a branch: %v", branch, err)
	}
	commit, err := r.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return "", problem(
			CodeSource, "%s has no branch %s: name another one with --target, or make a first commit", r.Dir, branch,
		)
	}
	return commit, nil
}

// keepRef is the ref in the source that keeps a commit for a workspace.
func (r *Record) keepRef(commit string) string { return r.keepPrefix() + commit }

func (r *Record) keepPrefix() string {
	return "refs/interlock/base/" + r.Repo + "/" + r.Name + "/" + r.ID + "/"
}

// keepAll is below which refs all workspaces of a source have theirs.
const keepAll = "refs/interlock/base/"

// keep makes the source keep a commit for the workspace.
func (r *Record) keep(ctx context.Context, commit string) error {
	source := git.Repository{Dir: r.Source}
	_, err := source.Output(ctx, "update-ref", r.keepRef(commit), commit)
	return err
}

// release lets the source forget what it kept for the workspace, and with the last one its objects
// may be pruned as before.
func (w *Workspace) release(ctx context.Context) error {
	if w.Copied || !exists(w.Source) {
		return nil
	}
	source := git.Repository{Dir: w.Source}
	refs, err := source.Output(ctx, "for-each-ref", "--format=%(refname)", keepAll)
	if err != nil {
		return err
	}
	var own strings.Builder
	others := false
	for ref := range strings.FieldsSeq(refs) {
		if strings.HasPrefix(ref, w.keepPrefix()) {
			own.WriteString("delete " + ref + "\n")
		} else {
			others = true
		}
	}
	if own.Len() > 0 {
		if _, err := source.Feed(ctx, []byte(own.String()), "update-ref", "--stdin"); err != nil {
			return err
		}
	}
	if others {
		return nil
	}
	return w.host.restorePruning(ctx, w.Repo, &source)
}

// expiry is the file .pruning of a repository's workspaces: what gc.pruneExpire of the source was.
type expiry struct {
	Source string `json:"source"`
	// Before is the value in the source's own configuration, nil if it had none.
	Before *string `json:"before"`
}

func (h *Host) pruningFile(repo string) string { return filepath.Join(h.Root, repo, ".pruning") }

const pruneKey = "gc.pruneExpire"

// stopPruning makes the source keep objects that no ref reaches. A ref for the base is not enough: git
// writes no object that it finds in a borrowed store, so a workspace may come to need an object that
// only an old branch of the source had, or that only lay there.
func (h *Host) stopPruning(ctx context.Context, repo string, s *source) error {
	if s.prune != nil && *s.prune == "never" {
		return nil
	}
	p := expiry{Source: s.dir, Before: s.prune}
	if err := writeJSON(h.pruningFile(repo), &p, true); err != nil {
		return err
	}
	_, err := s.repository().Output(ctx, "config", "--local", pruneKey, "never")
	return err
}

func (h *Host) restorePruning(ctx context.Context, repo string, source *git.Repository) error {
	var p expiry
	if err := readJSON(h.pruningFile(repo), &p); err != nil || p.Source != source.Dir {
		return nil // it was so before the first workspace
	}
	args := []string{"config", "--local", "--unset-all", pruneKey}
	if p.Before != nil {
		args = []string{"config", "--local", "--replace-all", pruneKey, *p.Before}
	}
	if _, err := source.Run(ctx, git.Call{Args: args, Answers: []int{5}}); err != nil {
		return err
	}
	return os.Remove(h.pruningFile(repo))
}
