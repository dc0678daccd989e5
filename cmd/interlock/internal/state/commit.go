package state

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// commitFlags is the flags of commands that change documents.
type commitFlags struct {
	ifVersion string
	ifAbsent  bool
	ifPresent bool
	force     bool
	asOf      string
	leases    []string
	note      string
	agent     string
}

const commitExits = `Exit codes: 0 written, 2 the replaced version is not named, 65 the document has changed
since it was read, 75 another holder has the key or a limit was met, 77 not allowed, 79 the
lease is lost, 69 no server answered.`

// overwriting is the help of commands that replace a document.
const overwriting = `To replace an existing document, name the version that you replace (--if-version, --as-of)
or a lease on the key (--lease, by default that of "interlock run"), or use --force. A key
that another holder has leased exclusively is not written at all.

`

// flags adds the flags of a change of one key.
func (c *commitFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&c.ifVersion, "if-version", "", "write only if the document still has this `version`")
	f.BoolVar(&c.ifAbsent, "if-absent", false, "write only if there is nothing at the key")
	f.BoolVar(&c.ifPresent, "if-present", false, "write only if there is something at the key, whatever version")
	f.BoolVar(&c.force, "force", false, "replace whatever is at the key, at whatever version, or nothing")
	c.shared(f)
}

// shared adds those of any commit.
func (c *commitFlags) shared(f *pflag.FlagSet) {
	f.StringVar(&c.asOf, "as-of", "", "write only if none of the keys was written after this `version` of the namespace")
	f.StringArrayVar(
		&c.leases, "lease", nil, "a `lease` that covers the write; may be repeated (default: $INTERLOCK_LEASE)",
	)
	f.StringVar(&c.note, "note", "", "a `text` about the change, for readers of the change")
	cli.AgentVar(f, &c.agent, "your `name`, for others to read")
}

// request returns the flags in the form of the HTTP API, without the keys.
func (c *commitFlags) request() (*api.CommitRequest, error) {
	if len(c.leases) == 0 {
		if id, err := view.LeaseFlag(""); err == nil {
			c.leases = []string{id}
		}
	}
	for _, id := range c.leases {
		if _, err := view.LeaseFlag(id); err != nil {
			return nil, err
		}
	}
	body := &api.CommitRequest{Agent: c.agent, Note: c.note, Leases: c.leases}
	asOf, err := cli.ParseVersion("--as-of", c.asOf)
	if asOf != nil {
		body.AsOf = *asOf
	}
	return body, err
}

// reads is the condition under which a key is changed, if there is one.
func (c *commitFlags) reads(key interlock.Key) ([]api.ReadRequest, error) {
	read := api.ReadRequest{Key: key, Absent: c.ifAbsent, Present: c.ifPresent}
	conditions := 0
	for _, given := range []bool{c.ifVersion != "", c.ifAbsent, c.ifPresent} {
		if given {
			conditions++
		}
	}
	switch {
	case c.force && (conditions > 0 || c.asOf != ""):
		return nil, cli.Usagef("--force and a condition: use one of them")
	case conditions > 1:
		return nil, cli.Usagef("--if-version, --if-absent and --if-present: use one of them")
	case conditions == 0:
		return nil, nil
	}
	var err error
	read.Version, err = cli.ParseVersion("--if-version", c.ifVersion)
	return []api.ReadRequest{read}, err
}

// one commits a change of one key.
func one(ctx context.Context, a *cli.App, c *commitFlags, key string, write *api.WriteRequest) error {
	write.Key = interlock.Key(key)
	reads, err := c.reads(write.Key)
	if err != nil {
		return err
	}
	body, err := c.request()
	if err != nil {
		return err
	}
	body.Agent = cmp.Or(body.Agent, cli.OwnName())
	body.Reads, body.Writes = reads, []api.WriteRequest{*write}
	if c.force {
		return force(ctx, a, key, body)
	}
	return commit(ctx, a, body)
}

// forceTries bounds how often a key is found to have a document, and then none.
const forceTries = 6

// force commits a change of one key to whatever document is there, or to nothing. It looks
// first which of the two it is: a commit that is refused may stand in the trail.
func force(ctx context.Context, a *cli.App, key string, body *api.CommitRequest) (err error) {
	var answer []byte
	present := mayBePresent(ctx, a, key)
	for range forceTries {
		changed := interlock.CodeVersionRequired
		if body.Reads = nil; present {
			body.Reads, changed = []api.ReadRequest{{Key: interlock.Key(key), Present: true}}, interlock.CodeStale
		}
		if answer, err = sendCommit(ctx, a, body); !cli.IsRefused(err, changed) {
			break
		}
		present = !present
	}
	return tellCommitted(a, answer, err)
}

// mayBePresent reports whether there is a document at a key, or it cannot be seen.
func mayBePresent(ctx context.Context, a *cli.App, key string) bool {
	var got api.Documents
	_, answer, err := a.API().Do(
		ctx, cli.Request{Method: http.MethodGet, Path: "/v1/state", Query: url.Values{"key": {key}}},
	)
	return err != nil || json.Unmarshal(answer, &got) != nil || len(got.Documents) != 1 || !got.Documents[0].Absent
}

func sendCommit(ctx context.Context, a *cli.App, body any) ([]byte, error) {
	_, answer, err := a.API().Insist(
		ctx, cli.Request{Method: http.MethodPost, Path: "/v1/commits", Body: body, ID: cli.FreshID(), Again: true}, false,
	)
	return answer, err
}

// commit sends a commit and tells what came of it.
func commit(ctx context.Context, a *cli.App, body any) error {
	answer, err := sendCommit(ctx, a, body)
	return tellCommitted(a, answer, err)
}

// tellCommitted prints what came of a commit. One that was refused because something has changed
// prints how, in words that are ready for a prompt.
func tellCommitted(a *cli.App, answer []byte, err error) error {
	if shown, err := a.RawAnswer(answer, err); shown {
		return err
	}
	if err != nil {
		return view.Stale(a, answer, err)
	}
	var got api.Committed
	if err := cli.Decode(answer, &got); err != nil {
		return err
	}
	a.Say("version %s\n", got.Version)
	for i := range got.Documents {
		if d := &got.Documents[i]; len(d.Value) > 0 {
			a.Say("%s is %s\n", cli.Clean(string(d.Key)), cli.Clean(string(d.Value)))
		}
	}
	a.Warn(got.Warnings)
	if next := cli.Next(got.Advice); next != "" {
		a.Complain("%s", next)
	}
	return nil
}

func newStateSet(a *cli.App) *cobra.Command {
	var c commitFlags
	var kind string
	var file string
	cmd := &cobra.Command{
		Use:   "set KEY [VALUE]",
		Short: "Write a document",
		Long: `Write the document at KEY: VALUE, or the content of --file, or standard input, byte for
byte. Its type is JSON unless --type names another.

` + overwriting + commitExits,
		Example: `  interlock state set account:12345 '{"balance": 100}' --if-absent
  interlock state set account:12345 --if-version 41 --note "late fee" < new.json
  interlock state set page:home --type text/markdown --file home.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usagef("name the key: %s", cli.UseLine(cmd))
			case len(args) > 2:
				return cli.Usagef("too many arguments: %s", cli.UseLine(cmd))
			case len(args) == 2 && file != "":
				return cli.Usagef("a value and --file: use one of them")
			}
			return nil
		},
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			value := []byte(nil)
			if len(args) == 2 {
				value = []byte(args[1])
			} else {
				var err error
				if value, err = cli.ReadAll(a.In, orStdin(file)); err != nil {
					return err
				}
			}
			write, err := putting(value, kind)
			if err != nil {
				return err
			}
			return one(cmd.Context(), a, &c, args[0], write)
		},
	}
	c.flags(cmd.Flags())
	cmd.Flags().StringVar(&kind, "type", interlock.JSONType, "the content `type`")
	cmd.Flags().StringVar(&file, "file", "", "read the document from this `file`; - is standard input")
	return cmd
}

func orStdin(file string) string {
	if file == "" {
		return "-"
	}
	return file
}

// putting is a write of bytes in the form of the HTTP API: in Base64, so that no spelling of
// JSON gets lost on the way.
func putting(value []byte, kind string) (*api.WriteRequest, error) {
	if base, _, _ := strings.Cut(kind, ";"); base == interlock.JSONType && !json.Valid(value) {
		return nil, cli.Usagef("the document is not JSON: correct it, or set its --type")
	}
	return &api.WriteRequest{Base64: new(base64.StdEncoding.EncodeToString(value)), ContentType: kind}, nil
}

func newStateMerge(a *cli.App) *cobra.Command {
	var c commitFlags
	cmd := &cobra.Command{
		Use:   "merge KEY PATCH",
		Short: "Change members of a JSON document",
		Long: `Change the JSON document at KEY by a merge patch (RFC 7396): members of PATCH replace
those of the document, null removes them, all others stay.

` + overwriting + commitExits,
		Example:           `  interlock state merge account:12345 '{"status": "closed", "hold": null}' --if-version 41`,
		Args:              cli.TwoArgs("a key", "a patch"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !json.Valid([]byte(args[1])) {
				return cli.Usagef("the patch is not JSON")
			}
			return one(cmd.Context(), a, &c, args[0], &api.WriteRequest{Merge: json.RawMessage(args[1])})
		},
	}
	c.flags(cmd.Flags())
	return cmd
}

func newStateAdd(a *cli.App) *cobra.Command {
	var c commitFlags
	var least, most string
	cmd := &cobra.Command{
		Use:   "add KEY N",
		Short: "Add to a counter, within bounds",
		Long: `Add N, which may be negative, to the counter at KEY; one that is not there is 0.
Additions commute, so they need neither a version nor a lease, and two agents that
add are never in each other's way. With --min or --max nothing is written if the sum
would be below or above.

` + commitExits,
		Example: `  interlock state add balance:12345 250
  interlock state add balance:12345 --min 0 -- -1200`,
		Args:              cli.TwoArgs("a key", "a number"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := &api.WriteRequest{}
			for _, n := range []struct {
				what, text string
				to         **int64
			}{{"N", args[1], &write.Add}, {"--min", least, &write.Min}, {"--max", most, &write.Max}} {
				if n.text == "" {
					continue
				}
				v, err := strconv.ParseInt(n.text, 10, 64)
				if err != nil {
					return cli.Usagef("%s %s: want an integer of 64 bits", n.what, cli.Clean(n.text))
				}
				*n.to = &v
			}
			return one(cmd.Context(), a, &c, args[0], write)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if strings.HasPrefix(err.Error(), "unknown shorthand flag: '") &&
			strings.ContainsAny(err.Error()[25:26], "0123456789") {
			return cli.Usagef("a negative number stands behind --, as in: interlock state add balance:12345 -- -1200")
		}
		return cli.Usagef("%w", err)
	})
	c.shared(cmd.Flags())
	cmd.Flags().StringVar(&least, "min", "", "the least `sum`")
	cmd.Flags().StringVar(&most, "max", "", "the greatest `sum`")
	return cmd
}

func newStateDelete(a *cli.App) *cobra.Command {
	var c commitFlags
	cmd := &cobra.Command{
		Use:   "delete KEY",
		Short: "Delete a document; its version is never used again",
		Long: `Delete the document at KEY. Its history is kept as for any document, and its version is
never used again: a later document at the key has a higher one.

` + overwriting + commitExits,
		Args:              cli.OneArg("a key"),
		ValidArgsFunction: view.CompleteKeys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return one(cmd.Context(), a, &c, args[0], &api.WriteRequest{Delete: true})
		},
	}
	c.flags(cmd.Flags())
	return cmd
}

// over writes the flags over the members of a commit.
func (c *commitFlags) over(body map[string]any) error {
	flags, err := c.request()
	if err != nil {
		return err
	}
	text, err := json.Marshal(flags)
	if err == nil {
		err = cli.DecodeNumbers(text, &body)
	}
	if body["agent"] == nil && body["session"] == nil {
		body["agent"] = cli.OwnName()
	}
	return err
}

// newCommit returns the command state commit.
func newCommit(a *cli.App) *cobra.Command {
	var c commitFlags
	var file string
	cmd := &cobra.Command{
		Use:   "commit",
		Short: "Change several documents at once, all or none",
		Long: `Commit the content of --file, or standard input: an object with reads, the versions that the
decision was based on, and writes. If any of those documents has changed since, nothing is
written, and the answer describes the changes.

  {"reads":  [{"key": "account:1", "version": "41"}, {"key": "order:7", "absent": true}],
   "writes": [{"key": "account:1", "merge": {"status": "billed"}},
              {"key": "order:7", "put": {"total": 1200}},
              {"key": "balance:1", "add": -1200, "min": 0},
              {"key": "draft:7", "delete": true}]}

` + commitExits,
		Example: `  interlock state commit --note "order 7" < change.json`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			content, err := cli.ReadAll(a.In, orStdin(file))
			if err != nil {
				return err
			}
			body := map[string]any{}
			if err := cli.DecodeNumbers(content, &body); err != nil {
				return cli.Usagef("the commit cannot be read as JSON: %w", err)
			}
			if err := c.over(body); err != nil {
				return err
			}
			return commit(cmd.Context(), a, body)
		},
	}
	c.shared(cmd.Flags())
	cmd.Flags().StringVar(&file, "file", "", "read the commit from this `file` of JSON; - is standard input")
	return cmd
}
