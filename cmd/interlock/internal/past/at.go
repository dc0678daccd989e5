package past

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/archive"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// ofThePast are the commands that at runs: each reads by HTTP alone what is journaled.
var ofThePast = []string{
	"key list", "key get", "key waits", "why", "lease list", "agent list", "task list", "queue list", "queue get",
	"approval list", "workflow list", "state list", "effect list", "effect get", "writer list", "pattern list",
	"pattern get", "namespace get", "top",
}

// New returns the command at. root makes the commands of the program for another App.
func New(a *cli.App, root func(*cli.App) *cobra.Command) *cobra.Command {
	var index, moment, dir, against, prefix string
	cmd := &cobra.Command{
		Use:   "at (--index N | --time T) [--against M | COMMAND [ARGS]]",
		Short: "Run a reading command as of an earlier moment, or compare two",
		Long: `Run a reading command on the state after an entry of the journal, or as of a time: the holders and
waiters of a key, the leases, the tasks. The output is the one that the command would have shown
then, and the moment goes to standard error. "waits" stands for "key waits", "ls" for
"key list", and "key KEY" for "key get KEY".

With --against instead of a command it prints what differs from an earlier state: leases that are
new, gone or held by another agent, waiters and their positions, versions of documents, states of
tasks. Without --index and --time it compares that state with the present.

With --data-dir the journal in a directory is read, and no server is needed: a copy from another
machine makes a report of a problem reproducible. Nothing in it is changed.

Heartbeats, progress and connections are not journaled: each session that had not ended is shown
as live.

The commands are: key list|get|waits, why, lease list, agent list, task list, queue list|get, approval
list, workflow list, state list, effect list|get, writer list, pattern list|get, namespace get,
top --frames 1.`,
		Example: `  interlock at --time 8h key waits
  interlock at --time 2026-01-02T03:04:05Z why account:12345
  interlock at --index 1041 --data-dir ./copy key KEY
  interlock at --index 1100 --against 1041
  interlock at --against 8h --prefix account:`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case against != "" && len(args) > 0:
				return cli.Usagef(
					"--against shows what differs and runs no command: omit %s", cli.Clean(strings.Join(args, " ")),
				)
			case against != "" && index != "" && moment != "":
				return cli.Usagef("name one moment besides --against: --index or --time")
			case against != "":
				return differences(cmd, a, against, cmp.Or(index, moment), prefix, dir)
			case prefix != "":
				return cli.Usagef("--prefix narrows --against; most commands take a prefix of keys themselves")
			case len(args) == 0:
				return cli.Usagef("name a command, such as key waits, or --against and a moment to compare with")
			}
			if (index == "") == (moment == "") {
				return cli.Usagef("name one moment: --index 1041, --time 2026-01-02T03:04:05Z, or --time 8h for 8 hours ago")
			}
			query := url.Values{}
			if index != "" {
				query.Set("index", index)
			} else {
				query.Set("time", moment)
			}
			t := &transport{query: query}
			if dir != "" {
				from, err := archive.Open(cmd.Context(), dir)
				if err != nil {
					return err
				}
				t.archive = from
			}
			return t.run(cmd, a, root, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&index, "index", "", "the `index` of an entry of the journal, as answers and events show it")
	cmd.Flags().StringVar(&moment, "time", "", "a `time` in RFC 3339, or how long ago it is, such as 8h or 7d")
	cmd.Flags().StringVar(&against, "against", "", "print what differs since this earlier `moment`, an index or a time")
	cmd.Flags().StringVar(&prefix, "prefix", "", "with --against, only keys that begin with this `text`")
	cmd.Flags().StringVar(&dir, "data-dir", "", "read the journal in this `directory` instead of asking a server")
	return cmd
}

// transport carries the requests of a command to /v1/at.
type transport struct {
	query   url.Values        // of the moment
	archive http.RoundTripper // nil: a server is asked
	next    http.RoundTripper
	shown   *time.Time // the moment of the last answer; nil for an entry without a time
	index   string
}

// run runs a command with a root of its own. The options before at count for it, too.
func (t *transport) run(cmd *cobra.Command, a *cli.App, root func(*cli.App) *cobra.Command, args []string) error {
	inner := cli.NewApp(args)
	inner.In, inner.Out, inner.Err = a.In, a.Out, a.Err
	inner.Wrap = func(next http.RoundTripper) http.RoundTripper {
		t.next = next
		if t.archive != nil {
			t.next = t.archive
		}
		return t
	}
	r := root(inner)
	args = longForm(r, args)
	found, _, err := r.Find(args)
	name := strings.TrimPrefix(found.CommandPath(), r.Name()+" ")
	if err != nil || !slices.Contains(ofThePast, name) {
		return cli.Usagef("%s has no past: name one of %s", strings.Join(args, " "), strings.Join(ofThePast, ", "))
	}
	r.SetArgs(append(cli.Globals(cmd), args...))
	if err := r.ExecuteContext(cmd.Context()); err != nil {
		return err
	}
	switch {
	case t.index == "" || inner.JSON():
	case t.shown == nil:
		a.Complain("after entry %s, which has no time", t.index)
	default:
		a.Complain("as of %s, after entry %s", t.shown.UTC().Format(time.RFC3339), t.index)
	}
	return nil
}

// longForm spells out the short forms of commands.
func longForm(root *cobra.Command, args []string) []string {
	switch args[0] {
	case "waits":
		return append([]string{"key", "waits"}, args[1:]...)
	case "ls":
		return append([]string{"key", "list"}, args[1:]...)
	case "key":
		if found, _, err := root.Find(args); err != nil || len(args) > 1 && found.Name() == "key" {
			return append([]string{"key", "get"}, args[1:]...)
		}
	}
	return args
}

// RoundTrip asks /v1/at for the answer to a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return nil, fmt.Errorf("%s %s: the past cannot be changed", r.Method, r.URL.Path)
	}
	path := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	query := url.Values{"path": {path}}
	for name, values := range t.query {
		query[name] = values
	}
	u := *r.URL
	u.Path, u.RawPath, u.RawQuery = "/v1/at", "", query.Encode()
	r = r.Clone(r.Context())
	r.URL = &u
	res, err := t.next.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	defer res.Body.Close()
	var got api.Past
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		return nil, fmt.Errorf("the answer of /v1/at cannot be read: %w", err)
	}
	t.shown, t.index = got.Time, fmt.Sprint(got.At.Index)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(got.Answer)), int64(len(got.Answer))
	res.Header.Del("Content-Length")
	return res, nil
}
