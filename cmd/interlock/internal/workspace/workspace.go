package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/workspace"
)

// New returns the command workspace.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"workspace", "Give each agent a place of its own to work in",
		`A workspace is a folder with the files of a repository at one commit, and a private git
directory that borrows the repository's objects. Its commits reach the target branch through
the merge queue merge.REPO.TARGET alone.

  new ─► run, sync ─► submit ─┬─► landed ─► delete
            ▲                 │
            └──── returned ───┘

The lease workspace:REPO/NAME is held while a command changes the workspace or runs in it, and
the document of that key describes it. docs/workspaces.md is a guide.`,
		newNew(a), newRun(a), newList(a), newDiff(a), newSync(a), newSubmit(a), newDelete(a), newPrune(a), newRescue(a),
		newRepair(a), newSandbox(a), newDatabases(a), newMigrate(a), newHook(a),
	)
}

// place is the flags that name a workspace.
type place struct {
	root string
	repo string
}

func (p *place) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.root, "root", "", "the `folder` of all workspaces (default: ~/.local/state/interlock/workspaces)")
	cli.Bind(f, "root", "INTERLOCK_WORKSPACES")
	f.StringVar(
		&p.repo, "repo-name", "",
		"the `name` of the repository in keys (default: the last part of its origin's URL, else that of its folder)",
	)
}

// host opens the folder of all workspaces.
func (p *place) host() (*workspace.Host, error) {
	root := p.root
	if root == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("no folder for workspaces: set --root (%w)", err)
			}
			state = filepath.Join(home, ".local", "state")
		}
		root = filepath.Join(state, "interlock", "workspaces")
	}
	return workspace.NewHost(root)
}

// find opens the workspace that an argument names: NAME or REPO/NAME, or the one of this folder.
func (p *place) find(ctx context.Context, args []string) (*workspace.Host, *workspace.Workspace, error) {
	h, err := p.host()
	if err != nil {
		return nil, nil, err
	}
	if len(args) == 0 {
		w, err := h.At(".")
		if err != nil {
			return nil, nil, cli.Usagef("name a workspace, or run the command inside one (%v)", err)
		}
		return h, w, nil
	}
	repo, name, full := strings.Cut(args[0], "/")
	if !full {
		repo, name = p.repo, args[0]
	}
	if repo == "" {
		if repo, err = only(h, name); err != nil {
			return nil, nil, err
		}
	}
	w, err := h.Find(repo, name)
	return h, w, err
}

// only is the one repository that has a workspace of a name.
func only(h *workspace.Host, name string) (string, error) {
	if err := workspace.CheckName("workspace", name); err != nil {
		return "", cli.ExitWith(cli.ExitUsage, err)
	}
	list, err := h.List("")
	if err != nil {
		return "", err
	}
	var repos []string
	for _, w := range list {
		if w.Name == name {
			repos = append(repos, w.Repo)
		}
	}
	switch len(repos) {
	case 0:
		return "", fmt.Errorf("there is no workspace %s: `interlock workspace list` shows all", name)
	case 1:
		return repos[0], nil
	}
	return "", cli.Usagef(
		"several repositories have a workspace %s: name one of %s", name, strings.Join(repos, "/"+name+", ")+"/"+name,
	)
}

// exit adds the exit code to a refusal of package workspace.
func exit(err error) error {
	refusal, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	switch refusal.Code {
	case workspace.CodeName, workspace.CodeKind, workspace.CodeInclude:
		return cli.ExitWith(cli.ExitUsage, err)
	case workspace.CodeLimit:
		return cli.ExitWith(cli.ExitNotAcquired, err)
	case workspace.CodeConflict:
		return cli.ExitWith(cli.ExitConflict, err)
	}
	return err
}

// hold is the lease of a workspace.
type hold struct {
	a     *cli.App
	key   string
	id    string // of the lease
	agent string
	c     *client.Client // nil: it is the lease of the run around this command
}

// holding does something under the lease of a workspace. It does not wait for the lease: another
// holder is an agent at work.
func holding(
	ctx context.Context, a *cli.App, key, agent, purpose string, do func(ctx context.Context, h *hold) error,
) error {
	agent = cmp.Or(agent, cli.OwnName())
	if lease := around(key); lease != "" {
		return exit(do(ctx, &hold{a: a, key: key, id: lease, agent: agent}))
	}
	c, err := link.Dial(ctx, a, agent, 0)
	if err != nil {
		return err
	}
	defer link.HangUp(c)
	lease, err := c.Acquire(ctx, client.Request{
		Keys: []interlock.Key{interlock.Key(key)}, Flow: client.SharedFlow, Purpose: purpose,
	})
	if err != nil {
		return err
	}
	// A lost lease ends what is done, and a signal, too: it is repeatable.
	ctx, stop := signal.NotifyContext(lease.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = exit(do(ctx, &hold{a: a, key: key, id: lease.ID().String(), agent: agent, c: c}))
	if lost := lease.Err(); lost != nil {
		return cli.ExitWith(cli.ExitLost, fmt.Errorf("the lease on %s is lost: %s", cli.Clean(key), a.Sentence(lost)))
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), link.LeaveTimeout)
	defer cancel()
	if left := lease.Release(limit, client.Outcome{Outcome: "done"}); left != nil && err == nil {
		a.Complain("the lease could not be released and ends by itself within %s: %s", lease.Info().TTL, a.Sentence(left))
	}
	return err
}

// around is the lease of the run that this command is in, if that has the key.
func around(key string) string {
	if slices.Contains(strings.Split(os.Getenv("INTERLOCK_KEYS"), "\n"), key) {
		return os.Getenv("INTERLOCK_LEASE")
	}
	return ""
}

// document is what the document of a workspace's key has.
type document struct {
	Kind    workspace.Kind `json:"kind"`
	Host    string         `json:"host"`
	Path    string         `json:"path"`
	Target  string         `json:"target"`
	Branch  string         `json:"branch"`
	Base    string         `json:"base"`
	Ports   []string       `json:"ports,omitempty"`
	Agent   string         `json:"agent,omitempty"`
	Purpose string         `json:"purpose,omitempty"`
	// Submission is the last one.
	Submission *workspace.Submission `json:"submission,omitempty"`
}

func documentOf(w *workspace.Workspace) *document {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	d := &document{
		Kind: w.Kind, Host: host, Path: w.Path(), Target: w.Target, Branch: w.Branch, Base: w.Base, Ports: w.Ports,
		Agent: w.Agent, Purpose: w.Purpose,
	}
	if n := len(w.Submissions); n > 0 {
		d.Submission = &w.Submissions[n-1]
	}
	return d
}

// describe writes the document of the workspace.
func (h *hold) describe(ctx context.Context, w *workspace.Workspace) error {
	body, err := json.Marshal(documentOf(w))
	if err != nil {
		return err
	}
	return h.write(ctx, api.WriteRequest{Key: api.Key(h.key), Put: body})
}

// forget deletes the document.
func (h *hold) forget(ctx context.Context) error {
	err := h.write(ctx, api.WriteRequest{Key: api.Key(h.key), Delete: true})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeUnknownDocument {
		return nil
	}
	return err
}

func (h *hold) write(ctx context.Context, change api.WriteRequest) error {
	body := &api.CommitRequest{Agent: h.agent, Leases: []string{h.id}}
	body.Writes = []api.WriteRequest{change}
	_, _, err := h.a.API().Insist(
		ctx, cli.Request{Method: http.MethodPost, Path: "/v1/commits", Body: body, ID: cli.FreshID(), Again: true}, false,
	)
	return err
}

// purpose is what the lease is for, for others to read.
func purposeOf(w *workspace.Workspace, what string) string {
	if w.Purpose != "" {
		return w.Purpose
	}
	return what
}
