package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/link"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
	"github.com/interlockdev/interlock/workspace"
)

// submission is one use of submit.
type submission struct {
	a *cli.App
	place
	message string
	all     bool
	again   bool
	allow   []string
	on      string
	named   bool // on was given, also an empty one
	prior   int
	style   cli.Choice
	wait    cli.Wait
}

func newSubmit(a *cli.App) *cobra.Command {
	s := &submission{a: a}
	var allowable []string
	for _, w := range merger.Allowable() {
		allowable = append(allowable, string(w))
	}
	cmd := &cobra.Command{
		Use:   "submit [NAME]",
		Short: "Send a workspace's commits to the merge queue",
		Long: `Push the commits of a workspace to the repository of the merge queue, under the ref
refs/interlock/sub/ID, and create the task of the queue merge.REPO.TARGET, which is printed.
With --all every changed and untracked file is committed first; without it such files are
refused. The same commit is the same submission, however often it is sent. One that came back,
for example because of a flaky check, or was withdrawn or superseded, is tried again without a
change with --again, and so is one that has landed and was dropped from the target by a rewind.
What came back because it is usually an accident, such as the deletion of most files, lands with
--allow and the reason of the return, if it is meant.

A newer submission of a workspace supersedes the one that waits, and takes its place: the older
one does not land any more. One that goes on after a squash needs no sync: the merger knows what
of it the target has.

Where the target demands leases for certain paths ("merge serve --lease-paths"), the task claims
their keys: it enters the line when they are free, and holds them until it has landed or comes
back.

--on names the submission that this one builds on, and has the commit of: it lands after that one. If
that one is returned or withdrawn, this one comes back with the reason base_returned and keeps its
place; if that one is superseded by one with its commit, that is the base from now on. A workspace that was
made with --on needs none, until the target has the commit; --on '' submits without.

--priority goes before submissions without one, unless their checks run or they came more than 10 s
for each step of it earlier. With credentials "merge serve --priority-for" names those that may.

Other submissions in line that change the same lines are named on standard error, if a merger
takes this one within 2 seconds; "interlock merge why" tells them later.

With --wait the outcome is awaited: the landing is printed on standard output, and what comes
back with a returned submission on standard error, ready for a prompt. One that is superseded or
withdrawn meanwhile ends with exit code 1.

Without NAME it is the workspace of this folder. Exit codes: 0 landed, or without --wait in
line; 65 returned, also before, or unresolved conflicts; 75 still in line after --wait; 1 changed files
have to be committed first, there is nothing to submit, or the task is dead; 69 no server
answered, 77 not allowed, 79 the lease was lost, 2 wrong flags.`,
		Example: `  interlock workspace submit fix-login --all -m "Rename login to signIn"
  interlock workspace submit --wait 10m || interlock workspace sync`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, why := range s.allow {
				if !slices.Contains(merger.Allowable(), merger.Why(why)) {
					return cli.Usagef("--allow %s: want %s", cli.Quote(why), strings.Join(allowable, ", "))
				}
			}
			if s.prior < 0 || s.prior > interlock.MaxPriority {
				return cli.Usagef("--priority %d: want a number from 1 to %d", s.prior, interlock.MaxPriority)
			}
			s.named = cmd.Flags().Changed("on")
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
	f.BoolVar(&s.again, "again", false, "submit a commit again that was returned, withdrawn, superseded or dropped")
	f.StringSliceVar(
		&s.allow, "allow", nil, "the `reason` of a return that is meant: "+strings.Join(allowable, ", ")+"; may be repeated",
	)
	f.StringVar(&s.on, "on", "", "the `submission` that this one builds on: it lands after that one or comes back with it")
	f.IntVar(
		&s.prior, "priority", 0, "from 1 to 100: go before what has none and came up to 10 s for each step earlier",
	)
	s.style.Value = "merge"
	s.style.Among(cmd, "style", "how it lands", "merge", "squash")
	f.Var(&s.wait, "wait", "how long to wait for its outcome: a `duration`, 0, or forever")
	return cmd
}

// sameRepository fails if the merge queue of a target's name is that of another repository than the upstream.
func sameRepository(ctx context.Context, c *client.Client, w *workspace.Workspace, name merger.Name) error {
	id, err := w.UpstreamRef(ctx, merge.IdentityRef)
	if err != nil {
		return err
	}
	return merger.CheckRepository(
		ctx, c, name, id, func(commit string) (bool, error) { return w.SourceHas(ctx, commit) },
	)
}

// requestID makes a submission happen once; a workspace made anew under the name has tasks of its own. With other
// claims it is another task, since a rule for leases may be newer than the first one.
func requestID(id string, claims []interlock.Claim) string {
	if len(claims) == 0 {
		return id
	}
	sum := sha256.New()
	for _, c := range claims {
		fmt.Fprintln(sum, c.Key)
	}
	return id + "." + hex.EncodeToString(sum.Sum(nil)[:8])
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
	c, err := link.Dial(ctx, s.a, w.Agent, 0)
	if err != nil {
		return err
	}
	defer link.HangUp(c)
	name, sent := merger.NameOf(w.Repo, "refs/heads/"+w.Target), s.content(w, work)
	if err := sameRepository(ctx, c, w, name); err != nil {
		return err
	}
	request := "workspace." + w.ID + "." + work.ID
	if s.again {
		if sent.Resubmits, err = returned(ctx, c, work); err != nil {
			return err
		}
		request += "." + work.Task
	}
	if !s.named {
		s.on = work.On
	}
	if err := s.findBase(ctx, c, name, &sent); err != nil {
		return err
	}
	if sent.On != "" {
		request += ".on." + sent.On
	}
	if s.prior != 0 {
		request += fmt.Sprintf(".priority.%d", s.prior)
	}
	claims, err := merger.Claims(ctx, c, name, work.Paths)
	if err != nil {
		return err
	}
	task, err := c.Submit(ctx, client.TaskSpec{
		Queue: name.Queue(), Payload: sent, Purpose: purposeOf(w, firstLine(work.Message)), Claims: claims,
		Priority: s.prior, ID: requestID(request, claims),
	})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeUnknownQueue {
		return cli.ExitWith(cli.ExitCode(err), fmt.Errorf(
			"the commits are kept as %s, but there is no merge queue %s: start `interlock merge serve`, then submit again",
			work.Ref, name.Queue(),
		))
	}
	if err != nil {
		return err
	}
	if task, err = present(ctx, c, task.ID, work.Task); err != nil {
		return err
	}
	if err := w.Queued(work, task.ID.String()); err != nil {
		return err
	}
	if s.wait == 0 && task.State.IsSettled() {
		return s.tellSettled(work, &task)
	}
	s.a.Complain(
		"%s: %s of %s in queue %s", work.ID, cli.Count(len(work.Paths), "file", "files"), work.Head[:12], task.Queue,
	)
	if err := s.tellPlace(ctx, c, name, sent, task.ID); err != nil {
		return err
	}
	if s.wait == 0 {
		if s.a.JSON() {
			return s.a.Print(&work.Submission)
		}
		s.a.Say("%s\n", task.ID)
		return nil
	}
	return s.await(ctx, c, name, task.ID)
}

// findBase names the submission of --on by its id.
func (s *submission) findBase(ctx context.Context, c *client.Client, name merger.Name, sent *merger.Submission) error {
	if s.on == "" {
		return nil
	}
	id, err := merger.Find(ctx, c, name, s.on)
	if refused, ok := errors.AsType[*interlock.Error](err); ok && refused.Code == interlock.CodeUnknownTask {
		next := ""
		if !s.named {
			next = "; the workspace was made on it: name another one, or add --on '' to submit without"
		}
		return fmt.Errorf(
			"--on: no submission %s is known in the line of %s: `interlock merge list %s` has those in line%s",
			cli.Quote(s.on), name, name, next,
		)
	} else if err != nil {
		return err
	}
	base, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	var content merger.Submission
	_ = json.Unmarshal(base.Payload, &content) // a settled task has none
	if o, err := merger.OutcomeOf(&base); err == nil && o.Submission != "" {
		content = merger.Submission{ID: o.Submission}
	}
	r, found, err := merger.Standing(ctx, c, name, id, content)
	if found {
		content.ID = r.ID
	}
	sent.On = cmp.Or(content.Resubmits, content.ID, id.String())
	return err
}

// returned is the submission that came back with this commit. It is empty if the merger never had it in line, or it was
// withdrawn: then it has no place.
func returned(ctx context.Context, c *client.Client, work *workspace.Work) (id string, err error) {
	if work.Task == "" {
		return "", cli.Usagef("--again: %s was not submitted before: leave it out", work.Head[:12])
	}
	last, err := interlock.ParseTaskID(work.Task)
	if err != nil {
		return "", err
	}
	task, err := c.Task(ctx, last)
	if err != nil {
		return "", err
	}
	o, err := merger.OutcomeOf(&task)
	switch {
	case err != nil:
		return "", err
	case o.Code == merger.Landed || o.Code == merger.Superseded:
		return "", nil // the merger knows whether the target still has it
	case o.Code == merger.Withdrawn || task.State == interlock.TaskCancelled || task.State == interlock.TaskDead:
		return "", nil
	case o.Code != merger.Returned:
		return "", fmt.Errorf("--again: %s was not returned, its task %s is %s", work.Head[:12], last, task.State)
	case o.Against == nil:
		return "", nil
	}
	return o.Submission, nil
}

// present reads a task. If it is over, and the commit was submitted once more since as another task, it reads that one.
func present(ctx context.Context, c *client.Client, id interlock.TaskID, last string) (interlock.Task, error) {
	task, err := c.Task(ctx, id)
	if err != nil || last == "" || last == id.String() || !task.State.IsSettled() {
		return task, err
	}
	newer, err := interlock.ParseTaskID(last)
	if err != nil {
		return task, err
	}
	again, err := c.Task(ctx, newer)
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeUnknownTask {
		return task, nil
	}
	return again, err
}

// tellSettled tells what became of a submission that was submitted before, and is over.
func (s *submission) tellSettled(work *workspace.Work, task *interlock.Task) error {
	const again = "to try this commit once more, add --again"
	o, err := merger.OutcomeOf(task)
	if err != nil {
		return err
	}
	switch o.Code {
	case merger.Landed:
		s.a.Complain("%s was submitted before: %s", work.ID, cli.Clean(o.Message))
		if s.a.JSON() {
			return s.a.Print(&work.Submission)
		}
		s.a.Say("%s\n", task.ID)
		return nil
	case merger.Returned:
		return cli.ExitWith(cli.ExitConflict, fmt.Errorf(
			"%s was submitted before, and came back: %s Or, %s", work.ID, cli.Clean(o.Message), again,
		))
	case merger.Withdrawn, merger.Superseded:
		return cli.ExitWith(cli.ExitFailure, fmt.Errorf(
			"%s was submitted before: %s %s", work.ID, cli.Clean(o.Message), again,
		))
	}
	return cli.ExitWith(
		cli.ExitFailure, fmt.Errorf("%s was submitted before, and its task is %s: %s", work.ID, task.State, again),
	)
}

// content is what the task of the merge queue has.
func (s *submission) content(w *workspace.Workspace, work *workspace.Work) merger.Submission {
	m := merger.Submission{
		ID: work.ID, Head: work.Head, Style: merge.Style(s.style.Value), Message: cli.Clip(work.Message, maxMessage),
		Workspace: w.Name, WorkspaceID: w.ID,
	}
	for _, why := range s.allow {
		m.Allow = append(m.Allow, merger.Why(why))
	}
	if m.Style == merge.StyleSquash {
		m.Base = work.Base // a merge finds its own
	}
	return m
}

// maxMessage is how many bytes of a commit's message become that of the landing.
const maxMessage = 16 << 10

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return cli.Clip(line, interlock.MaxPurposeBytes)
}

// await waits for the outcome of a submission.
func (s *submission) await(ctx context.Context, c *client.Client, name merger.Name, id interlock.TaskID) error {
	if deadline := s.wait.Deadline(); !deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadlineCause(ctx, deadline, cli.ErrInTime)
		defer done()
	}
	task, err := c.Await(ctx, id)
	switch {
	case errors.Is(context.Cause(ctx), cli.ErrInTime):
		why := ""
		within, done := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
		defer done()
		if f, err := merger.FreezeOf(within, c, name); err == nil && f != nil {
			why = cli.Clean(f.Text(name)) + "; "
		}
		return cli.ExitWith(cli.ExitNotAcquired, fmt.Errorf(
			"%sit has not landed within %s, and stays in line: `interlock task wait %s` waits for it", why,
			time.Duration(s.wait), id,
		))
	case err != nil:
		return err
	}
	var outcome merger.Outcome
	_ = json.Unmarshal(task.Result, &outcome) // a result of another form is printed as it is
	switch outcome.Code {
	case merger.Withdrawn, merger.Superseded:
		return cli.ExitWith(cli.ExitFailure, fmt.Errorf(
			"%s: %s To submit this commit once more, add --again", outcome.Code, cli.Clean(outcome.Message),
		))
	case merger.Returned:
		var packet bytes.Buffer
		if err := json.Indent(&packet, task.Result, "", "  "); err != nil {
			return err
		}
		fmt.Fprintln(s.a.Err, cli.CleanLines(packet.String()))
		return cli.ExitWith(cli.ExitConflict, errors.New("returned: "+cli.Clean(outcome.Message)))
	}
	return s.a.PrintResult(task.Result)
}
