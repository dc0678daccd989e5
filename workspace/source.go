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
	tree   string // the folder of its files, or "" for a bare one, and for a path inside of a git directory
	bare   bool
	format string // of object ids
	name   string // what to call it in keys
	author Identity
	// prune is gc.pruneExpire in the source's own configuration, nil if it has none.
	prune *string
	// exclude is what the user or the repository ignores besides .gitignore.
	exclude []byte
	// settings are the user's configuration in the source, in git's order: a later one of a name wins. No agent writes
	// them.
	settings []setting
}

// setting is a line of a git configuration. Scope is system, global, local or worktree; the name has its section and
// key in lower case.
type setting struct{ scope, name, value string }

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
	s := &source{dir: facts[0], format: facts[1], bare: facts[2] == "true"}
	if len(facts) > 3 {
		s.tree = facts[3]
	}
	return s, s.configuration(ctx)
}

// openNamed is openSource for a path that a user names.
func openNamed(ctx context.Context, path string) (*source, error) {
	s, err := openSource(ctx, path)
	if err == nil && !s.bare && s.tree == "" {
		return nil, problem(CodeSource, "%s is inside a .git folder: name the folder above it", path)
	}
	return s, err
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

// personal is the environment in which git finds the configuration of the user and of the machine.
func personal() (env []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	env = []string{"HOME=" + home}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		} else {
			env = append(env, name)
		}
	}
	return env
}

// here is how git is called in the source as its user calls it: with the configuration of this worktree.
func (s *source) here() *git.Repository {
	if s.tree == "" {
		return &git.Repository{Dir: s.dir, Env: personal()}
	}
	return &git.Repository{Folder: s.tree, Env: personal()}
}

// setting returns the value of a setting that counts, or "". The name is in lower case.
func (s *source) setting(name string) (value string) {
	for i := range s.settings {
		if s.settings[i].name == name {
			value = s.settings[i].value
		}
	}
	return value
}

// configuration reads what the source's and the user's configuration tell of it.
func (s *source) configuration(ctx context.Context) error {
	out, err := s.here().Output(ctx, "config", "--null", "--show-scope", "--list")
	if err != nil {
		return err
	}
	items := strings.Split(out, "\x00")
	for i := 0; i+1 < len(items); i += 2 {
		name, value, given := strings.Cut(items[i+1], "\n")
		if !given {
			value = "true"
		}
		if items[i] != "command" { // what every call of git is given
			s.settings = append(s.settings, setting{items[i], name, value})
		}
		if name == "gc.pruneexpire" && items[i] == "local" {
			s.prune = &value
		}
	}
	s.author = Identity{Name: s.setting("user.name"), Email: s.setting("user.email")}
	s.name = NameFrom(lastPart(s.setting("remote.origin.url")))
	if s.name == "" && s.tree != "" {
		s.name = NameFrom(filepath.Base(s.tree))
	}
	if s.name == "" {
		s.name = NameFrom(strings.TrimSuffix(filepath.Base(s.dir), ".git"))
	}
	for _, file := range []string{s.userFile("core.excludesfile", "ignore"), filepath.Join(s.dir, "info", "exclude")} {
		if content, err := os.ReadFile(file); err == nil {
			s.exclude = append(append(s.exclude, content...), '\n')
		}
	}
	return s.checkWhole(ctx)
}

// userFile is the file that a setting names, else the one of the user's configuration that git reads then.
func (s *source) userFile(setting, name string) string {
	home, _ := os.UserHomeDir()
	switch file := s.setting(setting); {
	case strings.HasPrefix(file, "~/"):
		return filepath.Join(home, file[2:])
	case file != "":
		return file
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	return filepath.Join(config, "git", name)
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
