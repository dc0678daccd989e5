package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
)

func newPattern(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pattern",
		Short: "Manage the rules for all keys of one shape",
		Long: `Key patterns define the keys of a namespace and their rules: capacity, rate, times,
claimants and modes. Keys that match no pattern stay open until "interlock namespace set
--closed".

docs/patterns.md shows how they are used.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newPatternSet(a), newPatternGet(a), newPatternLs(a), newPatternRm(a), newPatternRevisions(a), newPatternRevert(a),
	)
	return cmd
}

func newPatternSet(a *app) *cobra.Command {
	var p policy
	var file string
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

--file reads patterns as "interlock pattern get -o json" and "ls -o json" print them:
one object, or a list of objects with names; - is standard input. Each replaces the
pattern of its name. With NAME and flags they change the one object of the file.`,
		Example: `  interlock pattern set account 'account:{id:int}' --alias 'acct-{id:int}' --max-ttl 10m
  interlock pattern set runs 'org:{org}/runs' --capacity 2 --group batch=..1
  interlock pattern set model 'model:{name}' --rate 60/1m --burst 10
  interlock pattern set gpu 'gpu:{n:int}' --member 'gpu:{0..7}' --preempt revoke
  interlock pattern set runs --capacity 3
  interlock pattern ls -o json > patterns.json && interlock pattern set --file patterns.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 2:
				return usage("too many arguments: %s", useLine(cmd))
			case len(args) == 0 && file == "":
				return usage("name the pattern, or use --file: %s", useLine(cmd))
			case len(args) == 2 && file != "":
				return usage("the shape stands in the file: leave %s out, or --file", quote(clean(args[1])))
			}
			return nil
		},
		ValidArgsFunction: a.completePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			changes := p.fields(cmd.Flags())
			if file != "" {
				return a.setPatternFile(cmd.Context(), file, args, changes)
			}
			fields := map[string]any{}
			if len(args) == 2 {
				fields["pattern"] = args[1]
			} else {
				old, err := a.oldFields(cmd.Context(), patternPath(args[0]))
				if err != nil {
					return err
				}
				fields = old
			}
			for name, value := range changes {
				fields[name] = value
			}
			return a.setPattern(cmd.Context(), args[0], fields)
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the pattern, or several, from this `file` of JSON")
	return cmd
}

func patternPath(name string) string { return "/v1/patterns/" + url.PathEscape(name) }

func (a *app) setPattern(ctx context.Context, name string, fields map[string]any) error {
	r := request{Method: http.MethodPut, Path: patternPath(name), Body: fields, ID: freshID(), Again: true}
	return a.call(ctx, r, &struct{}{}, func() error {
		a.say("set: pattern %s\n", clean(name))
		return nil
	})
}

// setPatternFile sets the patterns of a file, in its order, up to the first that is
// refused.
func (a *app) setPatternFile(ctx context.Context, file string, args []string, changes map[string]any) error {
	list, err := readObjects(a.in, file, "patterns")
	if err != nil {
		return err
	}
	if len(list) != 1 && len(args)+len(changes) > 0 {
		return usage(
			"--file %s has %s: a name and flags are for a file with one", clean(file), count(len(list), "pattern", "patterns"),
		)
	}
	for i, fields := range list {
		name, _ := fields["name"].(string)
		if len(args) > 0 {
			name = args[0]
		}
		if name == "" {
			return usage("--file %s: pattern %d has no name: add the field name", clean(file), i+1)
		}
		delete(fields, "name")
		for field, value := range changes {
			fields[field] = value
		}
		if err := a.setPattern(ctx, name, fields); err != nil {
			if len(list) > 1 {
				a.complain("%d of %d were set, pattern %s was not:", i, len(list), clean(name))
			}
			return err
		}
	}
	return nil
}

// readObjects reads a file of JSON that has one object, or a list of them, or an
// object with such a list under a name, as a listing has it.
func readObjects(in io.Reader, file, list string) ([]map[string]any, error) {
	content, err := readAll(in, file)
	if err != nil {
		return nil, err
	}
	var objects []map[string]any
	var one map[string]any
	switch err = decodeNumbers(content, &one); {
	case err == nil && one[list] != nil:
		var whole map[string]json.RawMessage
		if err = json.Unmarshal(content, &whole); err == nil {
			err = decodeNumbers(whole[list], &objects)
		}
	case err == nil:
		objects = []map[string]any{one}
	default:
		if decodeNumbers(content, &objects) == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, usage("%s cannot be read as JSON: %w", clean(file), err)
	}
	for _, o := range objects {
		dropAnswer(o)
	}
	return objects, nil
}

// dropAnswer leaves out what an answer contains about itself.
func dropAnswer(fields map[string]any) {
	delete(fields, "at")
	delete(fields, "server_time")
}

// decodeNumbers keeps numbers as they are written.
func decodeNumbers(content []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is something behind the first value")
	}
	return nil
}

func readAll(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(in, 64<<20))
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	return content, nil
}

// oldFields are those of a resource as PUT takes them.
func (a *app) oldFields(ctx context.Context, path string) (map[string]any, error) {
	_, answer, err := a.api().do(ctx, request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := decodeNumbers(answer, &fields); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	dropAnswer(fields)
	delete(fields, "name")
	return fields, nil
}

func newPatternGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "get NAME",
		Short:             "Show a key pattern",
		Example:           "  interlock pattern get runs",
		Args:              oneArg("a pattern"),
		ValidArgsFunction: a.completePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var p patternAnswer
			return a.get(cmd.Context(), patternPath(args[0]), nil, &p, func() error {
				a.say("%s  %s\n", a.tint(bold, clean(p.Name)), clean(p.Shape))
				for _, fact := range p.facts() {
					a.say("  %-12s %s\n", fact[0], fact[1])
				}
				return nil
			})
		},
	}
}

func newPatternLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the key patterns",
		Example: `  interlock pattern ls
  interlock pattern ls -o json | jq -r '.patterns[].pattern'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var answer struct {
				Patterns []patternAnswer `json:"patterns"`
			}
			return a.get(cmd.Context(), "/v1/patterns", nil, &answer, func() error {
				if len(answer.Patterns) == 0 {
					a.complain("there is no key pattern: every key may be claimed, as long as it is well formed")
					return nil
				}
				t := a.table("NAME", "SHAPE", "POLICY")
				for i := range answer.Patterns {
					p := &answer.Patterns[i]
					t.row(clean(p.Name), clean(p.Shape), orDash(p.line()))
				}
				return t.write(a.out)
			})
		},
	}
}

func newPatternRm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "Forget a key pattern",
		Long: `Forget a key pattern. Leases under it stay held. Its keys then follow other patterns; if the
namespace is closed and none fits, new claims on them are refused.`,
		Example:           "  interlock pattern rm runs",
		Args:              oneArg("a pattern"),
		ValidArgsFunction: a.completePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := request{Method: http.MethodDelete, Path: patternPath(args[0]), ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("removed: pattern %s\n", clean(args[0]))
				return nil
			})
		},
	}
}
