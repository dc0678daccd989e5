package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/workspace"
)

// submission is one use of submit.
type submission struct {
	a *cli.App
	place
	message string
	all     bool
	style   cli.Choice
	wait    cli.Wait
}

func newSubmit(a *cli.App) *cobra.Command {
	s := &submission{a: a}
	cmd := &cobra.Command{
		Use:   "submit [NAME]",
		Short: "Send a workspace's commits to the merge queue",
		Long: `Push the commits of a workspace to the repository of the merge queue, under the ref
refs/interlock/sub/ID, and create the task of the queue merge.REPO.TARGET, which is printed.
With --all every changed and untracked file is committed first; without it such files are
refused. The same commit is the same submission, however often it is sent.

Other submissions in line that change the same lines are named on standard error, if a merger
takes this one within 2 seconds; "interlock merge why" tells them later.

With --wait the outcome is awaited: the landing is printed on standard output, and what comes
back with a returned submission on standard error, ready for a prompt.

Without NAME it is the workspace of this folder. Exit codes: 0 landed, or without --wait in
line; 65 returned, or unresolved conflicts; 75 still in line after --wait; 1 changed files
have to be committed first, there is nothing to submit, or the task is dead; 69 no server
answered, 77 not allowed, 79 the lease was lost, 2 wrong flags.`,
		Example: `  interlock workspace submit fix-login --all -m "Rename login to signIn"
  interlock workspace submit --wait 10m || interlock workspace sync`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, w, err := s.find(cmd.Context(), args)
			if err != nil {
				return exit(err)
			}
			return s.run(cmd.Context(), w)
		},
	}
	s.define(cmd)
	f := cmd.Flags()
	f.StringVarP(&s.message, "message", "m", "", "the message of the commit that --all makes (default: the purpose)")
	f.BoolVar(&s.all, "all", false, "commit all changed and untracked files first")
	s.style.Value = "merge"
	s.style.Among(cmd, "style", "how it lands", "merge", "squash")
	f.Var(&s.wait, "wait", "how long to wait for its outcome: a `duration`, 0, or forever")
	return cmd
}

// maxPaths is how many paths a task has at most; of more it has a digest.
const maxPaths = 2000

// payload is what the task of a submission has.
type payload struct {
	ID        string   `json:"id"`
	Ref       string   `json:"ref"`
	Workspace string   `json:"workspace"`
	Repo      string   `json:"repo"`
	Target    string   `json:"target"`
	Base      string   `json:"base,omitempty"` // of a squash alone: a merge finds its own
	Head      string   `json:"head"`
	Paths     []string `json:"paths,omitempty"`
	// PathCount and PathDigest stand for a list that is too long: sha256 of the paths, each with a newline.
	PathCount  int    `json:"path_count"`
	PathDigest string `json:"path_digest,omitempty"`
	Style      string `json:"style"`
	Message    string `json:"message"`
	Agent      string `json:"agent,omitempty"`
	Purpose    string `json:"purpose,omitempty"`
}

// queueOf is the merge queue of a target.
func queueOf(repo, target string) string {
	return "merge." + repo + "." + strings.ReplaceAll(target, "/", "-")
}

func (s *submission) run(ctx context.Context, w *workspace.Workspace) error {
	var work *workspace.Work
	if err := holding(
		ctx, s.a, w.Key(), w.Agent, purposeOf(w, "submit the workspace"),
		func(ctx context.Context, held *hold) (err error) {
			if work, err = w.Submit(ctx, s.message, s.all); err != nil {
				return err
			}
			return held.describe(ctx, w)
		},
	); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	c, err := link.Dial(ctx, s.a, w.Agent, interlock.DefaultTTL)
	if err != nil {
		return err
	}
	defer link.HangUp(c)
	task, err := c.Submit(ctx, client.TaskSpec{
		Queue: queueOf(w.Repo, w.Target), Payload: s.payload(w, work), Purpose: purposeOf(w, firstLine(work.Message)),
		MaxAttempts: 1000, ID: "workspace." + w.ID + "." + work.ID,
	})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeUnknownQueue {
		return cli.ExitWith(cli.ExitCode(err), fmt.Errorf(
			"the commits are kept as %s, but there is no merge queue %s: start `interlock merge serve`, then submit again",
			work.Ref, queueOf(w.Repo, w.Target),
		))
	}
	if err != nil {
		return err
	}
	if err := w.Queued(work, task.ID.String()); err != nil {
		return err
	}
	s.a.Complain(
		"%s: %s of %s in queue %s", work.ID, cli.Count(len(work.Paths), "file", "files"), work.Head[:12], task.Queue,
	)
	if err := s.tellClashes(ctx, c, w, work, task.ID); err != nil {
		return err
	}
	if s.wait == 0 {
		if s.a.JSON() {
			return s.a.Print(&work.Submission)
		}
		s.a.Say("%s\n", task.ID)
		return nil
	}
	return s.await(ctx, c, task.ID)
}

func (s *submission) payload(w *workspace.Workspace, work *workspace.Work) *payload {
	p := &payload{
		ID: work.ID, Ref: work.Ref, Workspace: w.Name, Repo: w.Repo, Target: w.Target, Head: work.Head,
		Paths: work.Paths, PathCount: len(work.Paths), Style: s.style.Value, Message: cli.Clip(work.Message, 16<<10),
		Agent: w.Agent, Purpose: w.Purpose,
	}
	if p.Style == "squash" {
		p.Base = work.Base
	}
	size := 0
	for _, path := range work.Paths {
		size += len(path) + 8
	}
	if len(work.Paths) > maxPaths || size > 128<<10 {
		sum := sha256.Sum256([]byte(strings.Join(work.Paths, "\n") + "\n"))
		p.Paths, p.PathDigest = nil, "sha256:"+hex.EncodeToString(sum[:])
	}
	return p
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return cli.Clip(line, interlock.MaxPurposeBytes)
}

// await waits for the outcome of a submission.
func (s *submission) await(ctx context.Context, c *client.Client, id interlock.TaskID) error {
	if deadline := s.wait.Deadline(); !deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadlineCause(ctx, deadline, cli.ErrInTime)
		defer done()
	}
	task, err := c.Await(ctx, id)
	switch {
	case errors.Is(context.Cause(ctx), cli.ErrInTime):
		return cli.ExitWith(cli.ExitNotAcquired, fmt.Errorf(
			"it has not landed within %s, and stays in line: `interlock task wait %s` waits for it", time.Duration(s.wait), id,
		))
	case err != nil:
		return err
	}
	var outcome struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(task.Result, &outcome) // a result of another form is printed as it is
	switch outcome.Code {
	case "withdrawn":
		return cli.ExitWith(cli.ExitFailure, errors.New("withdrawn: "+cli.Clean(outcome.Message)))
	case "returned":
		var packet bytes.Buffer
		if err := json.Indent(&packet, task.Result, "", "  "); err != nil {
			return err
		}
		fmt.Fprintln(s.a.Err, cli.CleanLines(packet.String()))
		return cli.ExitWith(cli.ExitConflict, errors.New("returned: "+cli.Clean(outcome.Message)))
	}
	return s.a.PrintResult(task.Result)
}
