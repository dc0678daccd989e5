package hooks

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/home"
	"github.com/interlockdev/interlock/internal/hookclient"
)

func newSkip(a *cli.App) *cobra.Command {
	var once bool
	var reason string
	cmd := &cobra.Command{
		Use: "skip --once FILE", Short: "Let one edit of a file pass although another agent holds it",
		Args: cli.OneArg("a file"),
		Long: `Let one edit of a file pass although another agent holds it. The next edit that hooks would
refuse for that reason is let through, within ten minutes; both agents read of it. The lease
stays, and the edit after that one is refused again.

It needs the right to revoke leases. The server's log has the reason, and the agent that used
it; a restart of the server forgets a skip that no edit has used.`,
		Example: `  interlock hooks skip --once src/auth.ts --reason "the fix cannot wait"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !once {
				return cli.Usagef("a skip is for one edit: interlock hooks skip --once FILE (--mode warn of install is for all)")
			}
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return cli.Usagef("%s is a folder: a skip is for one file", cli.Clean(args[0]))
			}
			if err := asHooks(a, cmd); err != nil {
				return err
			}
			in := hookclient.Skip{Path: path, Dir: filepath.Dir(path), Reason: reason}
			if in.Reason == "" {
				in.Reason = "let through by " + cli.Person()
			}
			body, err := json.Marshal(in)
			if err != nil {
				return err
			}
			header := http.Header{}
			for _, h := range hookclient.Where(body) {
				header.Add(h.Name, h.Value)
			}
			at := hookclient.Places([]string{filepath.ToSlash(path)}, nil)
			header.Set(at.Name, at.Value)
			var out hookclient.Skipped
			return a.Call(
				cmd.Context(),
				cli.Request{Method: http.MethodPost, Path: hookclient.SkipPath, Body: json.RawMessage(body), Header: header},
				&out, func() error {
					a.Say(
						"allowed: the next edit of %s that hooks would refuse, within %s\n", cli.Clean(out.File),
						cli.Span(time.Duration(out.ExpiresIn)*time.Millisecond),
					)
					return nil
				},
			)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "one edit (there is no other skip)")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the agents and for the log (default: your name)")
	return cmd
}

// asHooks returns an error if the hooks of this machine ask another server than the command, which
// no flag has named.
func asHooks(a *cli.App, cmd *cobra.Command) error {
	if url := cmd.Flag("url"); url.Changed && !cli.Given(url) {
		return nil
	}
	h, err := home.LoadHook()
	if err != nil {
		return err
	}
	if asked := strings.Join(a.Server.URLs(), ","); h.URL != "" && h.URL != asked {
		return cli.Usagef("the hooks ask %s, and this command %s: add --url %s", cli.Clean(h.URL), asked, cli.Clean(h.URL))
	}
	return nil
}
