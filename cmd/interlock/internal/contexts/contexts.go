package contexts

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// New returns the command context.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"context", "Keep servers, namespaces and credentials by name",
		`A context has the address of a server, or of the servers of a cluster, with its settings:
the namespace, the file with the credential, the certificates to trust, the agent's name. A
flag wins over a variable, a variable over the context. With an address from a flag or a
variable no address, credential or certificate of the context is used.

The configuration file is $INTERLOCK_CONFIG, else config.json in the directory interlock of
the user's configuration, such as ~/.config/interlock/config.json.`,
		newList(a), newGet(a), newSet(a), newUse(a), newDelete(a),
	)
}

func newList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the contexts", Args: cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(*cobra.Command, []string) error {
			config, err := cli.LoadConfig()
			if err != nil {
				return err
			}
			if a.JSON() {
				return a.Print(config)
			}
			if len(config.Contexts) == 0 {
				a.Complain("no contexts: `interlock context set NAME --url URL` makes one")
				return nil
			}
			t := a.Table("CONTEXT", "CURRENT", "URL", "NAMESPACE", "AGENT")
			for _, name := range config.Names() {
				fields, current := config.Contexts[name], cli.Cell{Text: "-"}
				if name == config.Current {
					current = cli.Coloured("yes", cli.Green)
				}
				t.Row(
					cli.Clean(name), current, cli.OrDash(cli.Clean(fields["url"])), cli.OrDash(cli.Clean(fields["namespace"])),
					cli.OrDash(cli.Clean(fields["agent"])),
				)
			}
			return t.Write(a.Out)
		},
	}
}

func newGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get [NAME]", Short: "Show a context, by default the current one", Args: cli.AtMostOneArg,
		Annotations:       map[string]string{cli.Offline: "true"},
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := cli.LoadConfig()
			if err != nil {
				return err
			}
			name := config.Current
			if len(args) == 1 {
				name = args[0]
			}
			if name == "" {
				return cli.Usagef("no context is current: name one, or set it with `interlock context use NAME`")
			}
			fields, err := config.Context(name)
			switch {
			case err != nil:
				return err
			case a.JSON():
				return a.Print(fields)
			}
			a.Say("%s\n", a.Tint(cli.Bold, cli.Clean(name)))
			for _, field := range cli.ContextFlags {
				if value := fields[field]; value != "" {
					a.Say("  %-16s %s\n", field, cli.Clean(value))
				}
			}
			return nil
		},
	}
}

func newSet(a *cli.App) *cobra.Command {
	values := map[string]*string{}
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Make a context, or change one", Args: cli.OneArg("a context"),
		Long: `Make the context NAME, or change it: settings without a flag stay as they are, and an empty
value removes a setting. The first context becomes the current one.`,
		Example: `  interlock context set prod --url https://interlock.example.com --namespace acme --credential-file ~/.interlock
  interlock context set local --url http://127.0.0.1:7420
  interlock context use prod`,
		Annotations:       map[string]string{cli.Offline: "true"},
		ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := cli.LoadConfig()
			if err != nil {
				return err
			}
			fields := config.Contexts[args[0]]
			if fields == nil {
				fields = map[string]string{}
			}
			for field, value := range values {
				switch {
				case !cmd.Flags().Changed(field):
				case *value == "":
					delete(fields, field)
				default:
					if fields[field], err = absolute(field, *value); err != nil {
						return err
					}
				}
			}
			if fields["url"] == "" {
				return cli.Usagef("name the server of the context with --url: %s", cli.UseLine(cmd))
			}
			if err := cli.CheckAddresses(fields["url"], fields["grpc-addr"]); err != nil {
				return err
			}
			config.Contexts[args[0]] = fields
			if config.Current == "" {
				config.Current = args[0]
			}
			return save(a, config, "set", args[0])
		},
	}
	for _, field := range cli.ContextFlags {
		values[field] = new(string)
		short := ""
		if field == "namespace" {
			short = "n"
		}
		cmd.Flags().StringVarP(values[field], field, short, "", "the `value` of --"+field+" in this context")
	}
	return cmd
}

// absolute makes the path of a file one that holds in every directory.
func absolute(field, value string) (string, error) {
	if !slices.Contains([]string{"credential-file", "tls-ca"}, field) {
		return value, nil
	}
	return filepath.Abs(value)
}

func newUse(a *cli.App) *cobra.Command {
	return changing(a, "use", "Make a context the current one", "current", func(config *cli.Config, name string) {
		config.Current = name
	})
}

func newDelete(a *cli.App) *cobra.Command {
	return changing(a, "delete", "Delete a context", "deleted", func(config *cli.Config, name string) {
		delete(config.Contexts, name)
		if config.Current == name {
			config.Current = ""
		}
	})
}

// changing makes a command that changes the configuration by one context.
func changing(a *cli.App, verb, short, done string, change func(*cli.Config, string)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cli.OneArg("a context"),
		Annotations:       map[string]string{cli.Offline: "true"},
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := cli.LoadConfig()
			if err != nil {
				return err
			}
			if _, err := config.Context(args[0]); err != nil {
				return err
			}
			change(config, args[0])
			return save(a, config, done, args[0])
		},
	}
}

func save(a *cli.App, config *cli.Config, done, name string) error {
	if err := config.Save(); err != nil {
		return err
	}
	if a.JSON() {
		return a.Print(config)
	}
	a.Say("%s: context %s\n", done, cli.Clean(name))
	return nil
}

// complete proposes the names of contexts.
func complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := cli.LoadConfig()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return config.Names(), cobra.ShellCompDirectiveNoFileComp
}
