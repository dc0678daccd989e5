package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/home"
	"github.com/interlockdev/interlock/internal/hookclient"
)

func newRelay(a *cli.App) *cobra.Command {
	var s hookclient.Settings
	cmd := &cobra.Command{
		Use: "relay HARNESS", Short: "Pass an event of a coding agent to a server with TLS", Args: cli.OneArg("a harness"),
		Long: `Read the event of a coding agent from standard input, pass it to the server, and print the
answer. interlock-hook does the same, and becomes this command for a server with https. The
server is that of the variables, else of hook.env beside the configuration file.

A failure prints nothing and exits with 0, so that no agent is blocked by it, and a line on
standard error reports it once in ten minutes. With --mode strict it is a refusal, exit code 2.`,
		Annotations:       map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Harness = args[0]
			answer, err := relay(cmd.Context(), a.In, &s)
			if err != nil {
				return exit(s.Fail(a.Err, err))
			}
			_, err = a.Out.Write(answer)
			return err
		},
	}
	// Their words are checked by the server: an error here would be a refusal to the agent.
	f := cmd.Flags()
	f.StringVar(&s.Mode, "mode", "", "warn, guard or strict, see interlock hooks install (default `guard`)")
	f.StringVar(&s.Hold, "hold", "", "turn or edit (default `turn`)")
	f.StringVar(&s.Prompts, "prompts", "", "on or off (default `on`)")
	f.StringVar(&s.Unknown, "unknown", "", "allow, ask or deny (default `allow`)")
	f.StringVar(&s.Commits, "commits", "", "refuse or own (default `refuse`)")
	f.StringVar(&s.Regions, "regions", "", "off or on (default `off`)")
	f.StringVar(&s.Files, "files", "", "how many files an event leases at most (default `32`)")
	f.StringArrayVar(&s.Also, "also", nil, "a `tool:field` of an MCP server that writes the file in that field")
	f.DurationVar(&s.Wait, "wait", hookclient.DefaultWait, "how long the event may wait for a file")
	return cmd
}

// exit is an exit code without a message.
func exit(code int) error {
	if code == hookclient.ExitOK {
		return nil
	}
	return cli.ExitWith(code, nil)
}

// relay passes an event on. Its target is not that of the flags: an address that cannot be read would
// end the command with the exit code of a refusal.
func relay(ctx context.Context, in io.Reader, s *hookclient.Settings) ([]byte, error) {
	event, err := io.ReadAll(io.LimitReader(in, hookclient.MaxEvent+1))
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	settings, err := home.LoadHook()
	if err != nil {
		return nil, err
	}
	return pass(ctx, &settings, s, event)
}

// pass sends an event to the server of the settings.
func pass(ctx context.Context, settings *home.Hook, s *hookclient.Settings, event []byte) ([]byte, error) {
	switch {
	case len(event) > hookclient.MaxEvent:
		return nil, fmt.Errorf("the event has more than %d bytes", hookclient.MaxEvent)
	case !json.Valid(event):
		return nil, errors.New("the event is not JSON")
	}
	target := cli.Target{
		URL: settings.URL, Namespace: settings.Namespace, Credential: settings.Credential,
		CredentialFile: settings.CredentialFile, CAFile: settings.CAFile,
	}
	if target.URL == "" {
		target.URL = "http://" + cli.DefaultHTTP
	}
	if err := target.Complete(); err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, h := range hookclient.Where(event) {
		header.Add(h.Name, h.Value)
	}
	ctx, cancel := context.WithTimeout(ctx, hookclient.Limit(event, s.Wait))
	defer cancel()
	request := cli.Request{
		Method: http.MethodPost, Path: s.Path(), Query: s.Query(), Body: json.RawMessage(event), Wait: s.Wait,
		Header: header,
	}
	server := cli.NewAPI(&target)
	_, answer, err := server.Do(ctx, request)
	if h, ok := hookclient.Asked(answer); ok && err == nil {
		header.Set(h.Name, h.Value)
		_, answer, err = server.Do(ctx, request)
	}
	if refused, ok := errors.AsType[*interlock.Error](err); ok {
		return nil, fmt.Errorf("%s (%s)", cli.RefusalText(refused), refused.Code)
	}
	return answer, err
}
