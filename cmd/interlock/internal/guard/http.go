package guard

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/proxy"
	"github.com/interlockdev/interlock/internal/filelock"
)

// guardHTTP is the flags of guard http.
type guardHTTP struct {
	listenFlags
	config, upstream, record, calls string
}

func newGuardHTTP(a *cli.App) *cobra.Command {
	var g guardHTTP
	cmd := &cobra.Command{
		Use:   "http --config FILE --upstream URL",
		Short: "Check leases as a reverse proxy before an HTTP API",
		Long: `Stand before an HTTP API as a reverse proxy. Agents call the guard instead of the API, with
the id of their lease in the header Interlock-Lease. The guard maps method and path to a
key, asks Interlock whether the lease is live and may write that key, adds the credential
that it alone has, and forwards the call. Calls without a route are refused; when Interlock
cannot be reached, so are all calls that need a lease.

The configuration is JSON; docs/guard-http.md describes it:

  {"routes": [
     {"methods": ["GET"], "path": "/accounts/{id}", "demand": "open"},
     {"methods": ["POST"], "path": "/accounts/{id}/fees", "key": "account:{id}", "demand": "lease"}
   ],
   "credential": {"scheme": "Bearer", "file": "api.token"}}

When it listens, it prints one line on standard output, "ready http=ADDR". Every call is
recorded as one JSON object a line on standard error, or in the file of --record.

The calls under way are kept in the file of --calls, by default beside the configuration. A
killed guard leaves calls running in the API; the next guard reads the file, and holds their
keys against other holders until their timeouts have passed. So it can be started again at
any time, to read another configuration or credential for example. Guards that run at the
same time need a file each; --calls none keeps none.`,
		Example: `  interlock guard http --config guard.json --upstream https://api.example.com/v2`,
		Args:    cli.NoArgs,
		Annotations: map[string]string{
			cli.TextOnly: "true",
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), a) },
	}
	f := cmd.Flags()
	f.StringVar(&g.config, "config", "", "the configuration `file`")
	f.StringVar(&g.upstream, "upstream", "", "the `URL` of the API; its path goes before that of each call")
	f.StringVar(&g.record, "record", "", "append the records to a `file` instead of standard error")
	f.StringVar(
		&g.calls, "calls", "",
		"keep the calls under way in a `file`, or in none (default: the configuration's name with .calls)",
	)
	g.flags(cmd, "127.0.0.1:7430")
	return cmd
}

func (g *guardHTTP) run(ctx context.Context, a *cli.App) error {
	if err := g.check(); err != nil {
		return err
	}
	if g.config == "" || g.upstream == "" {
		return cli.Usagef("name the guarded API and its routes: interlock guard http --config FILE --upstream URL")
	}
	upstream, err := url.Parse(g.upstream)
	if err != nil {
		return cli.Usagef("--upstream: it is no URL: want one such as https://api.example.com/v2")
	}
	cfg, err := proxy.Load(g.config)
	if err != nil {
		return cli.Usagef("--config: %w", err)
	}
	d, err := serverAPI(a)
	if err != nil {
		return err
	}
	records := io.Writer(a.Err)
	if g.record != "" {
		file, err := os.OpenFile(g.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return cli.Usagef("--record: %w", err)
		}
		defer file.Close()
		records = file
	}
	o := proxy.Options{
		Config: cfg, API: d, Upstream: upstream, Records: records,
		Failed: func(err error) { a.Complain("a call could not be recorded: %v", err) },
	}
	if g.calls == "" {
		g.calls = g.config + ".calls"
	}
	if g.calls != "none" {
		file, err := openCalls(g.calls)
		if err != nil {
			return err
		}
		defer file.Close()
		o.Calls = file
	}
	p, err := proxy.New(o)
	if _, ok := errors.AsType[*proxy.CallsError](err); ok {
		return cli.Usagef("--calls: %s: %w", cli.Clean(g.calls), err)
	}
	if err != nil {
		return cli.Usagef("--upstream: %w", err)
	}
	return g.serve(ctx, a, p.Server())
}

// openCalls opens the file of the calls under way for this guard alone.
func openCalls(name string) (*os.File, error) {
	const next = "name a file on a disk that outlives the guard with --calls FILE"
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, cli.Usagef("--calls: %w: %s", err, next)
	}
	switch held, err := filelock.Try(file); {
	case err != nil:
		file.Close()
		return nil, cli.Usagef("--calls: %s: %w: %s", cli.Clean(name), err, next)
	case held:
		file.Close()
		return nil, cli.Usagef("--calls: %s: another guard uses it: each needs one of its own: --calls FILE", cli.Clean(name))
	}
	return file, nil
}
