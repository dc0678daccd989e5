package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// Options describe a new workspace.
type Options struct {
	// Name is unique among the workspaces of a repository.
	Name string
	// Source is a path in the repository, or of a bare one.
	Source string
	// Repo is the repository's name in keys and paths. Empty means the last part of its origin's URL,
	// else the name of its folder.
	Repo string
	// Upstream is the repository that submissions are pushed to, as a path or a URL. Empty means the source.
	Upstream string
	// Target is the branch that the work is for. Empty means the one that is checked out in the source.
	Target string
	// On is the submission that the work builds on: its ID, or the workspace of the repository that has submitted it last.
	// The workspace starts from its commit. Empty means that it starts from the target.
	On string
	// Kind is how the files come to be there. Empty means Auto.
	Kind Kind
	// Include lists files and folders that git ignores, to be copied, relative to the source's top.
	Include []string
	// Local lists files that are copied as well, if they are there and no commit has them.
	Local []string
	// Share lists folders that git ignores, to be links to the source's: caches that all write.
	Share []string
	// Sparse lists the folders to check out, for kind Sparse.
	Sparse []string
	// Ports are names of ports that are claimed while a command runs.
	Ports []string
	// Reuse returns the workspace of that name if there is one, of the same repository, upstream and target.
	Reuse bool
	// Setup is a shell command that makes the workspace ready for work. Create keeps it in the record; the caller runs it.
	// Nil means interlock.setup of the user's configuration of git.
	Setup *string
	// Agent and Purpose are for others to read.
	Agent, Purpose string
}

// Plan is where a workspace will be, before it is made.
type Plan struct {
	Repo, Name, Target string
	// Setup is the command that makes the workspace ready, or "".
	Setup string

	opts   Options
	source *source
}

// Key is the key of the workspace's lease and document.
func (p *Plan) Key() string { return (&Record{Repo: p.Repo, Name: p.Name}).Key() }

// Prepare looks at the source and checks the options. It changes nothing.
func (h *Host) Prepare(ctx context.Context, o Options) (*Plan, error) {
	if err := CheckName("workspace", o.Name); err != nil {
		return nil, err
	}
	// A path in a workspace is one in its repository. Git does not run there: an agent writes it.
	outer, err := h.around(o.Source)
	if err != nil {
		return nil, err
	}
	open := openNamed
	if outer != nil {
		open = openSource
		o.Source, o.Repo = outer.place(), cmp.Or(o.Repo, outer.Repo)
		o.Target, o.Upstream = cmp.Or(o.Target, outer.Target), cmp.Or(o.Upstream, outer.Upstream)
	}
	s, err := open(ctx, o.Source)
	if err != nil {
		return nil, err
	}
	repo := cmp.Or(o.Repo, s.name)
	if err := CheckName("repository", repo); err != nil {
		return nil, err
	}
	target := o.Target
	if target == "" {
		target = s.branch(ctx)
	}
	if target == "" {
		return nil, problem(CodeSource, "%s has no branch checked out: name one with --target", s.dir)
	}
	o.Kind = cmp.Or(o.Kind, Auto)
	for _, port := range o.Ports {
		if err := CheckName("port", port); err != nil {
			return nil, err
		}
	}
	setup := s.setting("interlock.setup")
	if o.Setup != nil {
		setup = *o.Setup
	}
	return &Plan{Repo: repo, Name: o.Name, Target: target, Setup: setup, opts: o, source: s}, nil
}

// around returns the record of the workspace that a path is in, or nil. It takes the outermost one: what lies below
// that is an agent's.
func (h *Host) around(path string) (*Record, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	var found *Record
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		parent := filepath.Dir(dir)
		switch filepath.Base(dir) {
		case "tree", "git", "upper":
			if r, err := readRecord(parent); err == nil && r.Source != "" {
				found = &r
			}
		}
	}
	return found, nil
}

// place is a path in the source repository.
func (r *Record) place() string {
	if filepath.Base(r.Source) == ".git" {
		return filepath.Dir(r.Source)
	}
	return r.Source
}

// Create makes a workspace. If it fails, nothing is left that the next attempt does not remove.
// Errors: ErrExists, ErrLimit, ErrKind, ErrBaseChanged, ErrInclude, and those of git.
func (h *Host) Create(ctx context.Context, p *Plan) (w *Workspace, err error) {
	defer nameFullDisk(&err)
	unlock, err := h.lock(p.Repo)
	if err != nil {
		return nil, err
	}
	defer unlock()
	switch old, err := h.Find(p.Repo, p.Name); {
	case err == nil && old.Phase == Creating:
		if err := old.destroy(ctx); err != nil {
			return nil, err
		}
	case err == nil && p.opts.Reuse:
		return old, h.reuse(ctx, p, old)
	case err == nil:
		return nil, problem(CodeExists, "workspace %s/%s exists: use it, delete it, or choose another name", p.Repo, p.Name)
	case !errors.Is(err, ErrUnknown):
		return nil, err
	}
	if err := h.sameSource(p); err != nil {
		return nil, err
	}
	if err := h.admit(); err != nil {
		return nil, err
	}
	w, err = h.plan(ctx, p)
	if err != nil {
		return nil, err
	}
	// Removed are empty folders alone, which a crash has left before the record was written.
	_, _ = os.Remove(w.Path()), os.Remove(w.dir)
	if exists(w.dir) {
		return nil, problem(
			CodeExists, "%s is there already, without the record of a workspace: look at it, and move it away", w.dir,
		)
	}
	if err := os.MkdirAll(w.Path(), 0o700); err != nil {
		return nil, err
	}
	if err := w.write(w.dir); err != nil {
		return nil, err
	}
	if err := w.build(ctx, p); err != nil {
		return nil, errors.Join(err, w.destroy(context.WithoutCancel(ctx)))
	}
	w.Phase = Ready
	w.tellSource(ctx, p.source)
	return w, w.write(w.dir)
}

// reuse checks that a workspace is the one that would be made, and makes its files available.
func (h *Host) reuse(ctx context.Context, p *Plan, w *Workspace) error {
	upstream, err := p.upstream()
	if err != nil {
		return err
	}
	differs := ""
	switch {
	case w.Phase != Ready:
		return problem(CodeExists, "workspace %s/%s was left %s: delete it, and create it again", w.Repo, w.Name, w.Phase)
	case w.Source != p.source.dir:
		differs = "of the repository " + w.Source
	case w.Upstream != upstream:
		differs = "for " + w.Upstream
	case w.Target != p.Target:
		differs = "for the branch " + w.Target
	case p.opts.On != "":
		on, err := h.submissionOf(p.Repo, p.opts.On)
		if err != nil {
			return err
		}
		if w.On != on {
			differs = "on " + cmp.Or(w.On, "no submission")
		}
	}
	if differs != "" {
		return problem(
			CodeExists, "workspace %s/%s exists and is %s: delete it, or choose another name", w.Repo, w.Name, differs,
		)
	}
	w.Reused = true
	_, err = w.Enter(ctx, ".")
	return errors.Join(err, w.Use())
}

// sameSource refuses a second repository under one name.
func (h *Host) sameSource(p *Plan) error {
	list, err := h.List(p.Repo)
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.Source != p.source.dir {
			return problem(CodeExists, "%s is the name of %s already: name this repository with --repo-name", p.Repo, w.Source)
		}
	}
	return nil
}

// plan decides on all of the record.
func (h *Host) plan(ctx context.Context, p *Plan) (*Workspace, error) {
	upstream, err := p.upstream()
	if err != nil {
		return nil, err
	}
	on, err := h.submissionOf(p.Repo, p.opts.On)
	if err != nil {
		return nil, err
	}
	start, err := p.start(ctx, h, upstream, on)
	if err != nil {
		return nil, err
	}
	choice, err := chooseKind(filepath.Join(h.Root, p.Repo), p.opts.Kind, p.opts.Sparse, machine{})
	if err != nil {
		return nil, err
	}
	id, err := randomID()
	if err != nil {
		return nil, err
	}
	author := p.source.author
	if author.Name == "" {
		author.Name = cmp.Or(p.opts.Agent, p.Name)
	}
	if author.Email == "" {
		author.Email = p.Name + "@interlock.invalid"
	}
	return &Workspace{
		host: h, dir: filepath.Join(h.Root, p.Repo, p.Name),
		Record: Record{
			Repo: p.Repo, Name: p.Name, Phase: Creating, Kind: choice.kind, Why: choice.why, Rootless: choice.rootless,
			Source: p.source.dir, Checkout: p.source.tree, Copied: !writable(p.source.dir),
			Upstream: upstream, Target: p.Target, Branch: p.Name,
			Start: start, Base: start, On: on, ID: id, Author: author,
			Agent: p.opts.Agent, Purpose: p.opts.Purpose, Created: time.Now().UTC().Truncate(time.Second),
			Include: p.opts.Include, Share: p.opts.Share, Sparse: p.opts.Sparse, Ports: p.opts.Ports,
			Setup: p.Setup,
		},
	}, nil
}

// randomID is 16 hexadecimal digits.
func randomID() (string, error) {
	id := make([]byte, 8)
	_, err := rand.Read(id)
	return hex.EncodeToString(id), err
}

// build fills the folder of a workspace.
func (w *Workspace) build(ctx context.Context, p *Plan) error {
	if !w.Copied {
		if err := w.host.stopPruning(ctx, w.Repo, p.source); err != nil {
			return err
		}
		if err := w.take(ctx, p.source); err != nil {
			return err
		}
	}
	if err := w.makePrivate(ctx, p.source); err != nil {
		return err
	}
	if err := w.convert(ctx, p.source); err != nil {
		return err
	}
	if err := errors.Join(w.checkPaths(ctx, p.source, w.Include), w.checkPaths(ctx, p.source, w.Share)); err != nil {
		return err
	}
	local, err := w.localFiles(ctx, p)
	if err != nil {
		return err
	}
	if err := errors.Join(w.exclude(w.Include), w.exclude(w.Share), w.exclude(local)); err != nil {
		return err
	}
	switch w.Kind {
	case Overlay:
		return w.buildOverlay(ctx, p, local)
	case Reflink:
		if err := w.buildReflink(ctx); err != nil {
			return err
		}
	case Sparse:
		r := w.plainGit()
		if _, err := r.Output(
			ctx, append([]string{"sparse-checkout", "set", "--cone", "--end-of-options"}, w.Sparse...)...,
		); err != nil {
			return problem(
				CodeKind,
				"the folders cannot be checked out alone (%v): name folders relative to the repository's top", err,
			)
		}
		if _, err := r.Output(ctx, "read-tree", "-m", "-u", "HEAD"); err != nil {
			return err
		}
	case Worktree:
		if err := w.checkOut(ctx, w.Path(), filepath.Join(w.GitDir(), "index")); err != nil {
			return err
		}
	}
	if err := w.link(w.Path()); err != nil {
		return err
	}
	return w.bring(ctx, p.source, w.Path(), w.Path(), local)
}

// plainGit calls git in a tree that needs no mount, and a git directory that no agent had yet.
func (w *Workspace) plainGit() *git.Repository {
	return w.plainIn(git.Repository{Dir: w.GitDir(), WorkTree: w.Path(), Env: w.Author.env()}, w.GitDir(), w.Path())
}

// link makes git find the private git directory from the tree.
func (w *Workspace) link(tree string) error {
	return os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: "+w.GitDir()+"\n"), 0o600)
}

// buildOverlay makes an overlay, and mounts it unless it is rootless.
func (w *Workspace) buildOverlay(ctx context.Context, p *Plan, local []string) error {
	b, err := w.useBase(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(w.upper(), 0o755), os.Mkdir(w.work(), 0o700)); err != nil {
		return err
	}
	// The upper folder is written before the mount, the rest of it is seen through.
	if err := errors.Join(w.link(w.upper()), w.bring(ctx, p.source, w.upper(), b.files(), local)); err != nil {
		return err
	}
	if w.Rootless {
		return nil
	}
	return mountOverlay(b.files(), w.upper(), w.work(), w.Path())
}

func (w *Workspace) buildReflink(ctx context.Context) error {
	b, err := w.useBase(ctx)
	if err != nil {
		return err
	}
	return reflinkTree(ctx, b.files(), w.Path())
}

// useBase makes or opens the base checkout and copies its index. The times of files are those of the
// base in the tree, too, so git need not read them.
func (w *Workspace) useBase(ctx context.Context) (*base, error) {
	b, err := w.makeBase(ctx)
	if err != nil {
		return nil, err
	}
	index, err := os.ReadFile(b.index())
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(b.index())
	if err != nil {
		return nil, err
	}
	// Git compares a file again that is not older than the index: an agent may change one in the second of its making.
	made := info.ModTime().Add(-indexAhead)
	at := filepath.Join(w.GitDir(), "index")
	return b, errors.Join(os.WriteFile(at, index, 0o600), os.Chtimes(at, made, made))
}
