package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/merge/merger"
)

// halt is one use of freeze.
type halt struct {
	a           *cli.App
	freeze      merger.Freeze
	submissions []string
}

func newFreeze(a *cli.App) *cobra.Command {
	f := &halt{a: a}
	cmd := &cobra.Command{
		Use:   "freeze REPO/TARGET",
		Short: "Stop the landings of a target, with exceptions",
		Long: `Stop the landings of a target until "interlock merge thaw", except those that are named. Checks go
on, submissions are still accepted, and what waits keeps its order: what is excepted lands past it.
"merge why", "merge list", "status" and "workspace submit --wait" tell the reason, the author and
since when. A freeze replaces the one before.

--except names a submission in line: it is excepted also if it comes back and is submitted again,
and one that supersedes it is not. --except-by excepts all submissions of a credential; on a
server without credentials it is the name of an agent. What builds on a submission waits for that
one, whatever is excepted.

A landing that the merger has begun may still end. It takes the roles operator and agent, or the
role merger: a freeze is a document that only these roles write.

Exit codes: 0 frozen; 1 an excepted submission is not in line; 69 no server answered; 77 not
allowed; 2 wrong flags.`,
		Example: `  interlock merge freeze web/main --reason "release 2.4" --except-by release-bot
  interlock merge freeze web/main --reason "CI is down" --except fix-ci-0f3a9c12d4e5`,
		Args: cli.OneArg("a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.freeze.Reason) > interlock.MaxPurposeBytes {
				return cli.Usagef("--reason has %d bytes: want at most %d", len(f.freeze.Reason), interlock.MaxPurposeBytes)
			}
			return with(cmd.Context(), a, args[0], f.run)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.freeze.Reason, "reason", "", "why, for others to read")
	flags.StringArrayVar(&f.submissions, "except", nil, "a `submission` that lands all the same; may be repeated")
	flags.StringArrayVar(
		&f.freeze.Credentials, "except-by", nil, "a `credential` with submissions that land all the same; may be repeated",
	)
	flags.BoolVar(&f.freeze.Priority, "except-priority", false, "submissions with a priority land all the same")
	return cmd
}

func (f *halt) run(ctx context.Context, c *requests, n merger.Name) error {
	if _, err := c.queue(ctx, n.Queue()); err != nil {
		return err
	}
	for _, id := range f.submissions {
		task, err := merger.Find(ctx, c, n, id)
		if no, ok := errors.AsType[*interlock.Error](err); ok && no.Code == interlock.CodeUnknownTask {
			return fmt.Errorf(
				"--except: no submission %s is in line for %s; for a credential use --except-by", cli.Quote(id), n,
			)
		} else if err != nil {
			return err
		}
		e, _, err := look(ctx, c, n, task)
		if err != nil {
			return err
		}
		if e.Outcome != nil && e.Outcome.Code != merger.Returned {
			return fmt.Errorf("--except: submission %s is %s, and not in line", cli.Quote(id), e.Outcome.Code)
		}
		t, err := c.Task(ctx, task)
		if err != nil {
			return err
		}
		f.freeze.Submissions = append(
			f.freeze.Submissions, merger.Excepted{ID: e.Submission, Agent: t.Agent, Principal: t.Principal},
		)
	}
	body, err := json.Marshal(&f.freeze)
	if err != nil {
		return err
	}
	if err := c.replace(ctx, n.FreezeKey(), api.WriteRequest{Put: body}); err != nil {
		return err
	}
	frozen, err := merger.FreezeOf(ctx, c, n)
	switch {
	case err != nil:
		return err
	case f.a.JSON():
		return f.a.Print(frozenOf(frozen))
	case frozen == nil:
		return fmt.Errorf("%s was thawed meanwhile", n)
	}
	f.a.Say("%s: %s\n", n, cli.Clean(frozen.Text(n)))
	return nil
}

func newThaw(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "thaw REPO/TARGET", Short: "Let the landings of a frozen target go on",
		Long:    `Let the landings of a frozen target go on. It takes the same roles as "interlock merge freeze".`,
		Example: `  interlock merge thaw web/main`,
		Args:    cli.OneArg("a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd.Context(), a, args[0], func(ctx context.Context, c *requests, n merger.Name) error {
				if f, err := merger.FreezeOf(ctx, c, n); err != nil {
					return err
				} else if f == nil {
					a.Complain("%s is not frozen", n)
				} else if err := c.replace(ctx, n.FreezeKey(), api.WriteRequest{Delete: true}); err != nil {
					return err
				}
				if a.JSON() {
					return a.Print(frozenOf(nil))
				}
				a.Say("%s: thawed\n", n)
				return nil
			})
		},
	}
}

// frozenView is a freeze as JSON.
type frozenView struct {
	merger.Freeze
	Agent     string `json:"agent,omitempty"`
	Principal string `json:"principal,omitempty"`
	AgeMS     int64  `json:"age_ms"`
}

// frozenOf is the answer about a freeze, or about none.
func frozenOf(f *merger.Frozen) any {
	if f == nil {
		return &struct {
			Frozen *frozenView `json:"frozen"`
		}{}
	}
	return &struct {
		Frozen *frozenView `json:"frozen"`
	}{&frozenView{f.Freeze, f.Agent, f.Principal, f.Age.Milliseconds()}}
}
