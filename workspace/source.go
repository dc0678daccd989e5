package workspace

import (
	"context"
	"errors"
	"fmt"
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
	head   string // the branch that is checked out, or ""
	name   string // what to call it in keys
	author Identity
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
	out, err := discover.Output(
		ctx, "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-object-format",
		"--is-bare-repository",
	)
	if err != nil {
		if failure, ok := errors.AsType[*git.Error](err); ok && failure.Mentions("dubious ownership") {
			return nil, problem(CodeSource, "%s belongs to another user: clone it, or add it to git's safe.directory", path)
		}
		return nil, problem(CodeSource, "%s is in no git repository: name one with --repo", path)
	}
	facts := strings.Split(out, "\n")
	if len(facts) != 3 {
		return nil, fmt.Errorf("git describes %s as %q", path, out)
	}
	s := &source{dir: facts[0], format: facts[1]}
	if facts[2] == "false" {
		if s.tree, err = discover.Output(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel"); err != nil {
			return nil, err
		}
		s.head, _ = discover.Output(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	} else {
		s.head, _ = s.repository().Output(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	}
	return s, s.configuration(ctx)
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
			"config", "--null", "--get-regexp",
			`^(user\.(name|email)|remote\.origin\.url|core\.excludesfile|extensions\.partialclone)$`,
		},
		Answers: []int{1},
	})
	if err != nil {
		return err
	}
	origin, excludes := "", ""
	for item := range strings.SplitSeq(string(result.Out), "\x00") {
		name, value, _ := strings.Cut(item, "\n")
		switch name {
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
	s.name = nameFrom(lastPart(origin))
	if s.name == "" && s.tree != "" {
		s.name = nameFrom(filepath.Base(s.tree))
	}
	if s.name == "" {
		s.name = nameFrom(strings.TrimSuffix(filepath.Base(s.dir), ".git"))
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
	refs, err := source.Output(ctx, "for-each-ref", "--format=delete %(refname)", w.keepPrefix())
	if err != nil {
		return err
	}
	if refs != "" {
		if _, err := source.Feed(ctx, []byte(refs+"\n"), "update-ref", "--stdin"); err != nil {
			return err
		}
	}
	left, err := source.Output(ctx, "for-each-ref", "--count=1", keepAll)
	if err != nil || left != "" {
		return err
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
	r := s.repository()
	result, err := r.Run(ctx, git.Call{Args: []string{"config", "--local", pruneKey}, Answers: []int{1}})
	if err != nil {
		return err
	}
	before := strings.TrimSuffix(string(result.Out), "\n")
	if before == "never" {
		return nil
	}
	p := expiry{Source: s.dir}
	if result.Exit == 0 {
		p.Before = &before
	}
	if err := writeJSON(h.pruningFile(repo), &p); err != nil {
		return err
	}
	_, err = r.Output(ctx, "config", "--local", pruneKey, "never")
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
