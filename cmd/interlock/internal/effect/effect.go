package effect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command effect.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"effect", "Perform an external action at most once",
		`An effect is an action outside of Interlock that must not happen twice, such as a charge. Its
tool, target and the arguments that matter identify it. A second claim of the same action,
under any idempotency key, returns the first result, or asks for the outcome to be found
out; the action is never performed twice.

  claim ──► done (result)
    │
    └─────► unknown ── reconcile ──► done, or free again

"interlock effect run" does all of this around a command.`,
		newEffectRun(a), newEffectClaim(a), newEffectDone(a), newEffectUnknown(a), newEffectCancel(a), newEffectReconcile(a),
		newEffectGet(a), newEffectList(a), newEffectDelete(a),
	)
}

// effect is an effect with the texts that describe it.
type effect api.Effect

// claimer returns the name of the agent that claimed it.
func (e *effect) claimer() string {
	return cli.AgentName(api.Name{Agent: e.Agent, Session: e.Session, Flow: e.Flow})
}

// text describes it in half a sentence.
func (e *effect) text() string {
	text := "claimed by " + e.claimer() + " " + cli.ShortMillis(e.Age) + " ago"
	if e.State != interlock.EffectClaimed.String() {
		text = cli.Clean(e.State) + ", " + text
	}
	if e.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", e.Attempt)
	}
	switch {
	case e.State == interlock.EffectClaimed.String() && e.ExpiresIn > 0:
		text += ", for " + cli.ShortMillis(e.ExpiresIn) + " more"
	case len(e.Result) > 0:
		text += ", result " + cli.Clean(string(e.Result))
	}
	if reason := cli.Clean(e.Reason); reason != "" {
		text += fmt.Sprintf(": %q", reason)
	}
	return text
}

// effectFlags is the identity of an effect.
type effectFlags struct {
	tool, target, arguments string
}

func (x *effectFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&x.tool, "tool", "", "the tool that performs it, such as stripe.charge")
	f.StringVar(&x.target, "target", "", "the target of the action, such as customer:12")
	f.StringVar(
		&x.arguments, "args", "{}",
		"the arguments that matter, a `JSON` object; leave out what differs between two plans of the same, such as time stamps",
	)
}

func (x *effectFlags) check() error {
	if x.tool == "" || x.target == "" {
		return cli.Usagef("--tool and --target name the action and its target: set both")
	}
	var arguments map[string]json.RawMessage
	if err := json.Unmarshal([]byte(x.arguments), &arguments); err != nil || arguments == nil {
		return cli.Usagef("--args %s: want a JSON object", cli.Clean(x.arguments))
	}
	return nil
}

// request returns the claim of the effect.
func (x *effectFlags) request() *api.EffectRequest {
	return &api.EffectRequest{Tool: x.tool, Target: x.target, Arguments: json.RawMessage(x.arguments)}
}

func newEffectClaim(a *cli.App) *cobra.Command {
	var x effectFlags
	var ttl, wait time.Duration
	var lease, agent string
	cmd := &cobra.Command{
		Use:   "claim",
		Short: "Claim an effect before performing it",
		Long: `Claim an effect before it is done. The answer is printed as variables for a shell:

  INTERLOCK_EFFECT_STATE=claimed   do it now, then run "interlock effect done"
  INTERLOCK_EFFECT_STATE=done      it was done; INTERLOCK_EFFECT_RESULT has its result

Exit codes: 0 either of these, 75 another claimer is about to do it, 65 the outcome is
unknown: find out, and reconcile.`,
		Example: `  eval "$(interlock effect claim --tool stripe.charge --target customer:12 --args '{"invoice": 7, "amount": 1200}')" || exit
  if [ "$INTERLOCK_EFFECT_STATE" = claimed ]; then
    interlock effect done "$(./charge --idempotency-key "$INTERLOCK_EFFECT_ACTION")" || exit
  fi`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckDurations(
				cli.Duration("--ttl", ttl, time.Second, interlock.MaxEffectTTL), cli.Duration("--wait", wait, 0, 24*time.Hour),
			); err != nil {
				return err
			}
			if err := x.check(); err != nil {
				return err
			}
			body := x.request()
			body.Agent, body.TTL = cmp.Or(agent, cli.OwnName()), ttl.Milliseconds()
			if body.Lease = lease; lease == "" {
				body.Lease, _ = view.LeaseFlag("")
			}
			return claim(cmd.Context(), a, body, x.target, wait)
		},
	}
	x.flags(cmd)
	f := cmd.Flags()
	cli.DurationVar(
		f, &ttl, "ttl", interlock.DefaultEffectTTL, "how long the claim lives without a lease; then it counts as unknown",
	)
	cli.DurationVar(f, &wait, "wait", 0, "how long to wait for another claimer")
	f.StringVar(&lease, "lease", "", "the claim lives as long as this `lease` (default: $INTERLOCK_LEASE)")
	cli.AgentVar(f, &agent, "your `name`, for others to read")
	return cmd
}

// claim claims an effect, for as long as it may wait one call after another.
func claim(ctx context.Context, a *cli.App, body *api.EffectRequest, target string, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	// The claim's id proves, if the answer is lost, that this process is the one that claimed.
	body.ID = "e_" + cli.FreshID()
	r := cli.Request{Method: http.MethodPost, Path: "/v1/effects", Body: body, ID: cli.FreshID(), Again: true}
	for {
		left := min(max(0, time.Until(deadline)), interlock.MaxLongPoll)
		body.Wait, r.Wait = left.Milliseconds(), left
		_, answer, err := a.API().Insist(ctx, r, false)
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeEffectClaimed || time.Until(deadline) <= 0 {
			return claimed(a, answer, err, target)
		}
		r.ID = cli.FreshID()
	}
}

// claimed prints what came of a claim. For a refused one it prints the first claimer, and what to
// do.
func claimed(a *cli.App, answer []byte, err error, target string) error {
	if shown, err := a.RawAnswer(answer, err); shown {
		return err
	}
	var got api.EffectAnswer
	if broken := cli.Decode(answer, &got); broken != nil && err == nil {
		return broken
	}
	e := (*effect)(&got.Effect)
	switch {
	case err == nil:
		a.Say("export INTERLOCK_EFFECT=%s\nexport INTERLOCK_EFFECT_STATE=%s\nexport INTERLOCK_EFFECT_ACTION=%s\nexport INTERLOCK_EFFECT_RESULT=%s\n",
			cli.Quote(e.ID), cli.Quote(cli.Clean(e.State)), cli.Quote(cli.Clean(e.Digest)), cli.Quote(string(e.Result)))
		a.Complain("%s", e.text())
	case e.State == interlock.EffectClaimed.String():
		return cli.ExitWith(
			cli.ExitCode(err),
			fmt.Errorf("%s: do not do it too; wait with --wait until it is settled, and use its result", e.text()),
		)
	case e.State == interlock.EffectUnknown.String():
		return cli.ExitWith(
			cli.ExitCode(err), fmt.Errorf("%s: do not do it again; %s", e.text(), findOut(target, e.Digest)),
		)
	}
	return err
}

func newEffectDone(a *cli.App) *cobra.Command {
	return settling(a, "done [RESULT]", "Report that the claimed effect was done",
		`Report that the effect in $INTERLOCK_EFFECT was done. RESULT, JSON or text, is returned to
later claimers of the same action.`, "done", func(args []string) (any, error) {
			if len(args) == 0 {
				return &api.DoneRequest{}, nil
			}
			result, err := json.Marshal(cli.ResultOf(args[0]))
			return &api.DoneRequest{Result: result}, err
		})
}

func newEffectUnknown(a *cli.App) *cobra.Command {
	return settling(a, "unknown [REASON]", "Report that the outcome of the claimed effect is unknown",
		`Report that the outcome of the effect in $INTERLOCK_EFFECT is unknown, such as after a
time-out. It cannot be claimed again until it is reconciled.`, "unknown", reasoned)
}

func newEffectCancel(a *cli.App) *cobra.Command {
	return settling(a, "cancel [REASON]", "Report that the claimed effect was not done, and will not be",
		`Report that the effect in $INTERLOCK_EFFECT was certainly not done. The next claimer may do
it.`, "cancel", reasoned)
}

func reasoned(args []string) (any, error) {
	if len(args) == 0 {
		return &api.ReasonRequest{}, nil
	}
	return &api.ReasonRequest{Reason: args[0]}, nil
}

// settling makes a command for the claimer of an effect to report what became of it.
func settling(
	a *cli.App, use, short, long, how string, read func(args []string) (body any, err error),
) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := interlock.ParseEffectID(id); err != nil {
				// The text is a secret if it is nearly right, so it is not repeated.
				return cli.Usagef("name the claim: --id, or INTERLOCK_EFFECT as `interlock effect claim` prints it")
			}
			body, err := read(args)
			if err != nil {
				return err
			}
			r := cli.Request{
				Method: http.MethodPost, Path: "/v1/effects/" + url.PathEscape(id) + "/" + how, Body: body, ID: cli.FreshID(),
				Again: true,
			}
			return settle(cmd.Context(), a, r)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the claim's `id`")
	cli.Bind(cmd.Flags(), "id", "INTERLOCK_EFFECT")
	return cmd
}

func settle(ctx context.Context, a *cli.App, r cli.Request) error {
	var got api.EffectAnswer
	return a.Call(ctx, r, &got, func() error {
		if got.Effect.State == "" || got.Effect.State == "free" {
			a.Say("free: the next claimer may do it\n")
			return nil
		}
		a.Say("%s\n", (*effect)(&got.Effect).text())
		return nil
	})
}

func newEffectReconcile(a *cli.App) *cobra.Command {
	var happened, not bool
	var result, reason string
	cmd := &cobra.Command{
		Use:   "reconcile ACTION",
		Short: "Settle an effect with an unknown outcome",
		Long: `Settle the effect with the digest ACTION after you have looked at the target, because its
claimer died or does not know the outcome. With --happened it counts as done; with
--did-not-happen it is free, and the next claimer may do it.`,
		Example: `  interlock effect list --state unknown
  interlock effect reconcile 5f3c... --happened --result '{"charge": "ch_1"}' --reason "seen in the ledger"`,
		Args: cli.OneArg("the digest of an action"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if happened == not {
				return cli.Usagef("--happened or --did-not-happen: use one of them")
			}
			body := &api.ReconcileRequest{Happened: happened, Reason: reason}
			if result != "" {
				if not {
					return cli.Usagef("--result is of something that happened")
				}
				if !json.Valid([]byte(result)) {
					return cli.Usagef("--result: want JSON")
				}
				body.Result = json.RawMessage(result)
			}
			r := cli.Request{
				Method: http.MethodPost, Path: "/v1/effects/" + url.PathEscape(args[0]) + "/reconcile", Body: body,
				ID:    cli.FreshID(),
				Again: true,
			}
			return settle(cmd.Context(), a, r)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&happened, "happened", false, "it was done")
	f.BoolVar(&not, "did-not-happen", false, "it was not done")
	f.StringVar(&result, "result", "", "its result, `JSON`, for later claimers")
	f.StringVar(&reason, "reason", "", "how the outcome was found out")
	return cmd
}

func newEffectGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "get ACTION",
		Short: "Show an effect",
		Args:  cli.OneArg("the digest of an action"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.EffectView
			return a.Get(cmd.Context(), "/v1/effects/"+url.PathEscape(args[0]), nil, &got, func() error {
				a.Say("%s\n%s\n", cli.Clean(got.Effect.Action), (*effect)(&got.Effect).text())
				return nil
			})
		},
	}
}

func newEffectDelete(a *cli.App) *cobra.Command {
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "delete [ACTION]",
		Short: "Delete done effects before their time, so that each may be done again",
		Long: `Delete effects that were done longer ago than --older-than, or one, by its digest, that was
done or was found not done. The next agent that plans a deleted effect performs it again.
Claimed and unknown effects are never deleted. The command needs an operator's credential.

A namespace remembers 100,000 effects, a done one for 30 days. When it is full, new effects
replace done ones that are older than the namespace's effect-retention.`,
		Example: "  interlock effect delete --older-than 240h",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			byAge := cmd.Flags().Changed("older-than")
			if byAge == (len(args) == 1) {
				return cli.Usagef("name one effect, or an age: %s", cli.UseLine(cmd))
			}
			r := cli.Request{Method: http.MethodDelete, Path: "/v1/effects", Again: byAge}
			if byAge {
				if err := cli.CheckDurations(cli.Duration("--older-than", older, 0, interlock.EffectWindow)); err != nil {
					return err
				}
				r.Path += "?" + url.Values{"older_than_ms": {strconv.FormatInt(older.Milliseconds(), 10)}}.Encode()
			} else {
				r.Path += "/" + url.PathEscape(args[0])
			}
			for forgotten := 0; ; {
				var answer api.ForgottenEffects
				err := a.Call(cmd.Context(), r, &answer, func() error {
					if forgotten += answer.Forgotten; !answer.More {
						a.Say("deleted: %d\n", forgotten)
					}
					return nil
				})
				if err != nil || !answer.More {
					return err
				}
			}
		},
	}
	cli.DurationVar(cmd.Flags(), &older, "older-than", 0, "effects done at least this long ago, such as 240h")
	return cmd
}

func newEffectList(a *cli.App) *cobra.Command {
	var state string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List effects",
		Example: `  interlock effect list --state unknown`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Usagef("--limit %d: want at least 1", limit)
			}
			query := url.Values{}
			if state != "" {
				if _, ok := interlock.ParseEffectState(state); !ok {
					return cli.Usagef("--state %s: want claimed, done or unknown", cli.Clean(state))
				}
				query.Set("state", state)
			}
			t := a.Table("ACTION", "STATE", "BY", "AGE", "WHAT")
			more, err := a.Pages(cmd.Context(), "/v1/effects", query, limit, func(answer []byte) (int, string, error) {
				var page api.EffectList
				if err := json.Unmarshal(answer, &page); err != nil {
					return 0, "", err
				}
				for i := range page.Effects {
					e := (*effect)(&page.Effects[i])
					t.Row(cli.Clean(e.Digest), cli.Clean(e.State), e.claimer(), cli.ShortMillis(e.Age), cli.Clean(e.Action))
				}
				return len(page.Effects), page.Cursor, nil
			})
			if more {
				a.Complain("there are more: --limit lists them")
			}
			if err != nil || a.JSON() {
				return err
			}
			return t.Write(a.Out)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are claimed, done or unknown")
	cmd.Flags().IntVar(&limit, "limit", 10_000, "how many to list at most")
	return cmd
}

// findOut is the advice for an unknown outcome.
func findOut(target, digest string) string {
	return fmt.Sprintf(
		"find out at %s, then run `interlock effect reconcile %s` with --happened or --did-not-happen", cli.Clean(target),
		cli.Clean(digest),
	)
}
