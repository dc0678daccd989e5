package workspace

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
)

func newList(a *cli.App) *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "list [REPO]",
		Short: "List the workspaces on this host",
		Long: `List the workspaces on this host: what each has that its target has not, how far it is behind,
what was submitted last, and its disk use. It asks no server.`,
		Example: `  interlock workspace list
  interlock workspace list web -o json | jq -r '.workspaces[].path'`,
		Args:        cli.AtMostOneArg,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			repo := p.repo
			if len(args) == 1 {
				repo = args[0]
			}
			h, err := p.host()
			if err != nil {
				return err
			}
			return list(cmd.Context(), a, h, repo)
		},
	}
	p.define(cmd)
	return cmd
}

// row is a workspace in the list.
type row struct {
	*workspace.Record
	Key        string `json:"key"`
	Path       string `json:"path"`
	Head       string `json:"head,omitempty"`
	Ahead      int    `json:"ahead"`
	Behind     int    `json:"behind"`
	Changed    int    `json:"changed_files"`
	Untracked  int    `json:"untracked_files"`
	Unmerged   int    `json:"unmerged_files"`
	Unsent     int    `json:"unsubmitted_commits"`
	DiskBytes  int64  `json:"disk_bytes"`
	Unreadable string `json:"unreadable,omitempty"`
}

func list(ctx context.Context, a *cli.App, h *workspace.Host, repo string) error {
	all, err := h.List(repo)
	if err != nil {
		return err
	}
	out := struct {
		Workspaces []row  `json:"workspaces"`
		Bases      int    `json:"bases"`
		BaseBytes  int64  `json:"base_bytes"`
		DiskFree   uint64 `json:"disk_free_bytes"`
		DiskSize   uint64 `json:"disk_size_bytes"`
	}{}
	out.Workspaces = make([]row, len(all))
	var looks sync.WaitGroup
	room := make(chan struct{}, runtime.NumCPU())
	for i, w := range all {
		room <- struct{}{}
		looks.Go(func() {
			out.Workspaces[i] = look(ctx, w)
			<-room
		})
	}
	looks.Wait()
	if out.BaseBytes, out.Bases, err = h.BaseUsage(ctx); err != nil {
		return err
	}
	out.DiskFree, out.DiskSize, _ = workspace.DiskFree(h.Root)
	if a.JSON() {
		return a.Print(&out)
	}
	if len(all) == 0 {
		a.Complain("no workspaces")
		return nil
	}
	t := a.Table("WORKSPACE", "KIND", "AGENT", "AGE", "BEHIND", "UNSUBMITTED", "SUBMITTED", "DISK")
	for i := range out.Workspaces {
		l := &out.Workspaces[i]
		t.Row(
			l.Repo+"/"+l.Name, string(l.Kind), cli.OrDash(cli.Clean(l.Agent)), cli.Short(time.Since(l.Created)), l.Behind,
			l.state(), l.submitted(), cli.Bytes(l.DiskBytes),
		)
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	note := ""
	if out.Bases > 0 {
		note = fmt.Sprintf("%s, %s; ", cli.Count(out.Bases, "base checkout", "base checkouts"), cli.Bytes(out.BaseBytes))
	}
	if out.DiskSize > 0 {
		a.Complain("%s%d %% of the disk is free", note, out.DiskFree*100/out.DiskSize)
	}
	return nil
}

func look(ctx context.Context, w *workspace.Workspace) row {
	l := row{Record: &w.Record, Key: w.Key(), Path: w.Path()}
	l.DiskBytes, _ = w.Usage(ctx)
	if w.Phase != workspace.Ready {
		l.Unreadable = "left " + string(w.Phase)
		return l
	}
	s, err := w.Status(ctx)
	if err != nil {
		l.Unreadable = err.Error()
		return l
	}
	l.Head, l.Ahead, l.Behind = s.Head, s.Ahead, s.Behind
	l.Changed, l.Untracked, l.Unmerged, l.Unsent = s.Changed, s.Untracked, s.Unmerged, s.Commits
	return l
}

// state is what only the workspace has.
func (l *row) state() string {
	if l.Unreadable != "" {
		return cli.Cut(cli.Clean(l.Unreadable), 60)
	}
	s := workspace.Status{Changed: l.Changed, Untracked: l.Untracked, Unmerged: l.Unmerged, Commits: l.Unsent}
	return cli.OrDash(s.String())
}

// submitted is the last submission, and its task if it is in the merge queue.
func (l *row) submitted() string {
	if len(l.Submissions) == 0 {
		return cli.OrDash("")
	}
	last := l.Submissions[len(l.Submissions)-1]
	return strings.TrimSpace(last.Head[:12] + " " + last.Task)
}
