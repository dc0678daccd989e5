package namespace

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command namespace.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"namespace", "Manage a namespace: its settings, its end",
		"",
		newNamespaceGet(a), newNamespaceSet(a), newNamespaceDelete(a),
	)
}

// settings is the flags of a namespace's settings.
type settings struct {
	strict, closed, near bool
	quota, own           view.QuotaFlag
	retention            time.Duration
}

func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&s.strict, "strict-order", false, "require holders of keys to claim only later keys, segment by segment")
	f.BoolVar(&s.closed, "closed", false, "refuse keys that match none of the key patterns")
	f.BoolVar(&s.near, "near-misses", false, "warn of a new key that is spelled almost like a live one")
	cli.DurationVar(
		f, &s.retention, "effect-retention", 0,
		"how long a done effect is remembered at least, even if there is no room for others; 0 is 7 days",
	)
	f.Var(
		&s.quota, "quota",
		"a limit of the namespace, `WHAT=N`, of "+strings.Join(view.QuotaNames, ", ")+
			"; 0 is the server's own limit; may be repeated",
	)
	f.Var(
		&s.own, "principal-quota",
		"the same for each of its principals, `WHAT=N`, of all but keys, documents and state_bytes",
	)
}

// given reports whether any of them was on the command line.
func (s *settings) given(f *pflag.FlagSet) bool {
	for _, flag := range []string{
		"strict-order", "closed", "near-misses", "effect-retention", "quota", "principal-quota",
	} {
		if f.Changed(flag) {
			return true
		}
	}
	return false
}

// change puts what the flags say into the settings in the form of the HTTP API. Of a quota,
// what no flag names stays as it is.
func (s *settings) change(fields map[string]any, f *pflag.FlagSet) {
	for _, b := range []struct {
		flag, field string
		value       bool
	}{{"strict-order", "strict_order", s.strict}, {"closed", "closed", s.closed}, {"near-misses", "near_misses", s.near}} {
		if f.Changed(b.flag) {
			fields[b.field] = b.value
		}
	}
	if f.Changed("effect-retention") {
		fields["effect_retention_ms"] = s.retention.Milliseconds()
	}
	for field, changes := range map[string]view.QuotaFlag{"quota": s.quota, "principal_quota": s.own} {
		quota, _ := fields[field].(map[string]any)
		if quota == nil {
			quota = map[string]any{}
		}
		for name, n := range changes {
			quota[name] = n
		}
		if len(changes) > 0 {
			fields[field] = quota
		}
	}
}

func newNamespaceSet(a *cli.App) *cobra.Command {
	var s settings
	var file string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change a namespace's settings",
		Long: `Change the settings of the namespace that --namespace names. Settings without a flag stay as
they are. With --file the settings are those of the file, as "interlock namespace get -o
json" prints them, and settings in neither have their defaults.`,
		Example: `  interlock namespace set --strict-order
  interlock namespace set --near-misses --closed
  interlock namespace set --quota waiters=1000,requests_per_s=200 --principal-quota sessions=50
  interlock namespace get -o json > settings.json && interlock namespace set --file settings.json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var fields map[string]any
			if file != "" {
				list, err := cli.ReadObjects(a.In, file, "")
				if err != nil {
					return err
				}
				if len(list) != 1 {
					return cli.Usagef("--file %s: want one object", cli.Clean(file))
				}
				fields = list[0]
			} else {
				if !s.given(cmd.Flags()) {
					return cli.Usagef("name the settings to change: %s", cli.UseLine(cmd))
				}
				old, err := a.OldFields(cmd.Context(), "/v1/namespace")
				if err != nil {
					return err
				}
				fields = old
			}
			s.change(fields, cmd.Flags())
			r := cli.Request{Method: http.MethodPut, Path: "/v1/namespace", Body: fields, ID: cli.FreshID(), Again: true}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				var now api.Settings
				_, answer, err := a.API().Do(cmd.Context(), cli.Request{Method: http.MethodGet, Path: "/v1/namespace"})
				if err == nil {
					err = json.Unmarshal(answer, &now)
				}
				var facts [][2]string
				for _, fact := range view.SettingsFacts(&now.SettingsRequest) {
					if err == nil && (file != "" || cmd.Flags().Changed(fact[0])) {
						facts = append(facts, [2]string{fact[0], cli.OrDash(fact[1])})
					}
				}
				view.SaySet(a, "set", facts)
				return nil
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&file, "file", "", "read the settings from this `file` of JSON")
	return cmd
}

func newNamespaceGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "get",
		Short: "Show a namespace's settings",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s api.Settings
			return a.Get(cmd.Context(), "/v1/namespace", nil, &s, func() error {
				t := a.Table("SETTING", "VALUE")
				for _, fact := range view.SettingsFacts(&s.SettingsRequest) {
					t.Row(fact[0], cli.OrDash(fact[1]))
				}
				return t.Write(a.Out)
			})
		},
	}
}

func newNamespaceDelete(a *cli.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a namespace, with all that is in it",
		Long: `Delete a namespace, with all that is in it. The command is refused, and lists what is left,
while the namespace has sessions, leases, waiters, unfinished tasks, dead letters,
documents, effects, log entries, patterns, queues or settings of its own. --force ends and
drops all of that at once, and cannot be undone: holders lose their leases without grace,
and an effect that was done may be claimed again. The journal keeps the history for as long
as it keeps any. A later namespace of the same name begins anew, with higher fences and
versions than this one had.`,
		Example: `  interlock namespace delete ci-4711
  interlock namespace delete ci-4711 --force`,
		Args: cli.OneArg("a namespace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := cli.Request{Method: http.MethodDelete, Path: "/v1/namespaces/" + url.PathEscape(args[0]), Again: true}
			if force {
				r.Path += "?force=true"
			}
			return a.Call(cmd.Context(), r, &struct{}{}, func() error {
				a.Say("deleted: namespace %s\n", cli.Clean(args[0]))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "drop all that is in it; no command undoes that")
	return cmd
}
