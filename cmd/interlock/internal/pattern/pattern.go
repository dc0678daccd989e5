package pattern

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command pattern.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"pattern", "Manage the rules for all keys of one shape",
		`Key patterns define the keys of a namespace and their rules: capacity, rate, times,
claimants and modes. Keys that match no pattern stay open until "interlock namespace set
--closed".

docs/patterns.md shows how they are used.`,
		newPatternList(a), newPatternGet(a), newPatternSet(a), newPatternDelete(a), newPatternRevisions(a),
		newPatternRevert(a),
	)
}

func newPatternSet(a *cli.App) *cobra.Command {
	var p policy
	var file, reason string
	cmd := &cobra.Command{
		Use:   "set [NAME [SHAPE]]",
		Short: "Register a key pattern, or change one",
		Long: `Register the key pattern NAME for the keys of a SHAPE: literal text with variables
between. A variable is at least one character without a slash:

  account:{id}             any text
  ticket:{id:int}          a decimal number; leading zeros are dropped
  host:{name:lower}        any text; upper case is made lower case
  repo:{name}/{path...}    the last one: any number of segments, also none

With SHAPE, settings without a flag have their defaults, also when there was a pattern of
that name. Without SHAPE the pattern must exist, and settings without a flag stay as they
are. A list is replaced as a whole; --alias "" and the like clear it.

Without a ttl of its own a lease has the pattern's, else its session's, else 30 s, and never
more than its session was opened with.

--file reads patterns as "interlock pattern get -o json" and "list -o json" print them:
one object, or a list of objects with names; - is standard input. Each replaces the
pattern of its name. With NAME and flags they change the one object of the file.`,
		Example: `  interlock pattern set account 'account:{id:int}' --alias 'acct-{id:int}' --max-ttl 10m
  interlock pattern set runs 'org:{org}/runs' --capacity 2 --group batch=..1
  interlock pattern set model 'model:{name}' --rate 60/1m --burst 10
  interlock pattern set gpu 'gpu:{n:int}' --member 'gpu:{0..7}' --preempt revoke
  interlock pattern set runs --capacity 3
  interlock pattern list -o json > patterns.json && interlock pattern set --file patterns.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 2:
				return cli.Usagef("too many arguments: %s", cli.UseLine(cmd))
			case len(args) == 0 && file == "":
				return cli.Usagef("name the pattern, or use --file: %s", cli.UseLine(cmd))
			case len(args) == 2 && file != "":
				return cli.Usagef("the shape stands in the file: leave %s out, or --file", cli.Quote(cli.Clean(args[1])))
			}
			return nil
		},
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes := p.fields(cmd.Flags())
			if file != "" {
				return setPatternFile(cmd.Context(), a, file, reason, args, changes)
			}
			fields := map[string]any{}
			if len(args) == 2 {
				fields["pattern"] = args[1]
			} else {
				old, err := a.OldFields(cmd.Context(), patternPath(args[0]))
				if err != nil {
					return err
				}
				fields = old
			}
			for name, value := range changes {
				fields[name] = value
			}
			return setPattern(cmd.Context(), a, args[0], reason, fields)
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&file, "file", "", "read the pattern, or several, from this `file` of JSON")
	cli.ReasonVar(cmd.Flags(), &reason)
	return cmd
}

func patternPath(name string) string { return "/v1/patterns/" + url.PathEscape(name) }

func setPattern(ctx context.Context, a *cli.App, name, reason string, fields map[string]any) error {
	if reason != "" {
		fields["reason"] = reason
	}
	r := cli.Request{Method: http.MethodPut, Path: patternPath(name), Body: fields, ID: cli.FreshID(), Again: true}
	return a.Call(ctx, r, &struct{}{}, func() error {
		return sayPattern(ctx, a, name)
	})
}

// sayPattern prints a pattern as the server has it now, with the defaults that it has taken.
func sayPattern(ctx context.Context, a *cli.App, name string) error {
	var p api.KeyPattern
	_, answer, err := a.API().Do(ctx, cli.Request{Method: http.MethodGet, Path: patternPath(name)})
	if err == nil {
		err = json.Unmarshal(answer, &p)
	}
	var facts [][2]string
	if err == nil {
		facts = append([][2]string{{cli.Clean(p.Shape)}}, view.PatternFacts(&p.PatternRequest)...)
	}
	view.SaySet(a, "set: pattern "+cli.Clean(name), facts)
	return nil
}

// setPatternFile sets the patterns of a file, in its order, up to the first that is
// refused.
func setPatternFile(
	ctx context.Context, a *cli.App, file, reason string, args []string, changes map[string]any,
) error {
	list, err := cli.ReadObjects(a.In, file, "patterns")
	if err != nil {
		return err
	}
	if len(list) != 1 && len(args)+len(changes) > 0 {
		return cli.Usagef(
			"--file %s has %s: a name and flags are for a file with one", cli.Clean(file),
			cli.Count(len(list), "pattern", "patterns"),
		)
	}
	for i, fields := range list {
		name, _ := fields["name"].(string)
		if len(args) > 0 {
			name = args[0]
		}
		if name == "" {
			return cli.Usagef("--file %s: pattern %d has no name: add the field name", cli.Clean(file), i+1)
		}
		delete(fields, "name")
		for field, value := range changes {
			fields[field] = value
		}
		if err := setPattern(ctx, a, name, reason, fields); err != nil {
			if len(list) > 1 {
				a.Complain("%d of %d were set, pattern %s was not:", i, len(list), cli.Clean(name))
			}
			return err
		}
	}
	return nil
}

func newPatternGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "get NAME",
		Short:             "Show a key pattern",
		Example:           "  interlock pattern get runs",
		Args:              cli.OneArg("a pattern"),
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p api.Pattern
			return a.Get(cmd.Context(), patternPath(args[0]), nil, &p, func() error {
				a.Say("%s  %s\n", a.Tint(cli.Bold, cli.Clean(p.Name)), cli.Clean(p.Shape))
				for _, fact := range view.PatternFacts(&p.PatternRequest) {
					a.Say("  %-12s %s\n", fact[0], fact[1])
				}
				return nil
			})
		},
	}
}

func newPatternList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the key patterns",
		Example: `  interlock pattern list
  interlock pattern list -o json | jq -r '.patterns[].pattern'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var answer api.Patterns
			return a.Get(cmd.Context(), "/v1/patterns", nil, &answer, func() error {
				if len(answer.Patterns) == 0 {
					a.Complain("there is no key pattern: every key may be claimed, as long as it is well formed")
					return nil
				}
				t := a.Table("NAME", "SHAPE", "POLICY")
				for i := range answer.Patterns {
					p := &answer.Patterns[i]
					t.Row(cli.Clean(p.Name), cli.Clean(p.Shape), cli.OrDash(view.PatternLine(&p.PatternRequest)))
				}
				return t.Write(a.Out)
			})
		},
	}
}

func newPatternDelete(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a key pattern",
		Long: `Delete a key pattern. Leases under it stay held. Its keys then follow other patterns; if the
namespace is closed and none fits, new claims on them are refused.`,
		Example:           "  interlock pattern delete runs",
		Args:              cli.OneArg("a pattern"),
		ValidArgsFunction: view.CompletePatterns(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{Method: http.MethodDelete, Path: patternPath(args[0]), ID: cli.FreshID(), Again: true}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("deleted: pattern %s\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
}
