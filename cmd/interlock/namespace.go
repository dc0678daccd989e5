package main

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
)

func newNamespace(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namespace",
		Short: "Manage a namespace: its settings, its end",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNamespaceGet(a), newNamespaceSet(a), newNamespaceDelete(a))
	return cmd
}

// settings is the flags of a namespace's settings.
type settings struct {
	strict, closed, near bool
	quota, own           quotaFlag
	retention            time.Duration
}

func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&s.strict, "strict-order", false, "require holders of keys to ask only for later ones, segment by segment")
	f.BoolVar(&s.closed, "closed", false, "refuse keys that match none of the key patterns")
	f.BoolVar(&s.near, "near-misses", false, "warn of a new key that is spelled almost like a live one")
	f.DurationVar(
		&s.retention, "effect-retention", 0,
		"how long a done effect is remembered at least when there is no room for others; 0 is 7 days",
	)
	f.Var(
		&s.quota, "quota",
		"a limit of the namespace, `WHAT=N`, of "+strings.Join(quotaNames, ", ")+
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

// quotaNames are the fields of a quota.
var quotaNames = []string{
	"keys", "leases", "waiters", "sessions", "requests_per_s", "bytes_per_s", "documents", "state_bytes",
}

// quotaFlag collects WHAT=N.
type quotaFlag map[string]uint64

func (q *quotaFlag) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		what, text, _ := strings.Cut(part, "=")
		known := false
		for _, name := range quotaNames {
			known = known || name == what
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if !known || err != nil {
			return usage("want WHAT=N, such as waiters=1000, where WHAT is one of %s", strings.Join(quotaNames, ", "))
		}
		if *q == nil {
			*q = quotaFlag{}
		}
		(*q)[what] = n
	}
	return nil
}

func (q *quotaFlag) String() string {
	var list []string
	for _, name := range quotaNames {
		if n, ok := (*q)[name]; ok {
			list = append(list, name+"="+strconv.FormatUint(n, 10))
		}
	}
	return strings.Join(list, ",")
}

func (q *quotaFlag) Type() string { return "quota" }

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
	for field, changes := range map[string]quotaFlag{"quota": s.quota, "principal_quota": s.own} {
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

func newNamespaceSet(a *app) *cobra.Command {
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var fields map[string]any
			if file != "" {
				list, err := readObjects(a.in, file, "")
				if err != nil {
					return err
				}
				if len(list) != 1 {
					return usage("--file %s: want one object", clean(file))
				}
				fields = list[0]
			} else {
				if !s.given(cmd.Flags()) {
					return usage("name the settings to change: %s", useLine(cmd))
				}
				old, err := a.oldFields(cmd.Context(), "/v1/namespace")
				if err != nil {
					return err
				}
				fields = old
			}
			s.change(fields, cmd.Flags())
			r := request{Method: http.MethodPut, Path: "/v1/namespace", Body: fields, ID: freshID(), Again: true}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("set\n")
				return nil
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the settings from this `file` of JSON")
	return cmd
}

func newNamespaceGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get",
		Short: "Show a namespace's settings",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settingsAnswer
			return a.get(cmd.Context(), "/v1/namespace", nil, &s, func() error {
				t := a.table("SETTING", "VALUE")
				for _, fact := range s.facts() {
					t.row(fact[0], orDash(fact[1]))
				}
				return t.write(a.out)
			})
		},
	}
}

// retentionText returns how long done effects are kept at least, if that was set.
func retentionText(d int64) string {
	if d == 0 {
		return ""
	}
	return short(ms(d))
}

func newNamespaceDelete(a *app) *cobra.Command {
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
		Args: oneArg("a namespace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := request{Method: http.MethodDelete, Path: "/v1/namespaces/" + url.PathEscape(args[0]), Again: true}
			if force {
				r.Path += "?force=true"
			}
			return a.call(cmd.Context(), r, &struct{}{}, func() error {
				a.say("deleted: namespace %s\n", clean(args[0]))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "drop all that is in it; no command undoes that")
	return cmd
}

// settingsAnswer is a namespace's settings in the form of the HTTP API.
type settingsAnswer struct {
	StrictOrder    bool      `json:"strict_order"`
	Closed         bool      `json:"closed"`
	NearMisses     bool      `json:"near_misses"`
	Retention      int64     `json:"effect_retention_ms,omitempty"`
	Quota          quotaFlag `json:"quota"`
	PrincipalQuota quotaFlag `json:"principal_quota"`
}

// settingsOf is settings of a journal in that form.
func settingsOf(s *interlock.Settings) *settingsAnswer {
	quota := func(q interlock.Quota) quotaFlag {
		f := quotaFlag{}
		for i, n := range []int{q.Keys, q.Leases, q.Waiters, q.Sessions, q.Requests, q.Bytes, q.Documents, q.State} {
			if n > 0 {
				f[quotaNames[i]] = uint64(n)
			}
		}
		return f
	}
	return &settingsAnswer{
		s.StrictOrder, s.Closed, s.NearMisses, s.EffectRetention.Milliseconds(), quota(s.Quota), quota(s.PrincipalQuota),
	}
}

// facts are the settings, each with the name of its flag.
func (s *settingsAnswer) facts() [][2]string {
	yes := func(on bool) string {
		if on {
			return "yes"
		}
		return "no"
	}
	return [][2]string{
		{"strict-order", yes(s.StrictOrder)},
		{"closed", yes(s.Closed)},
		{"near-misses", yes(s.NearMisses)},
		{"effect-retention", retentionText(s.Retention)},
		{"quota", s.Quota.String()},
		{"principal-quota", s.PrincipalQuota.String()},
	}
}
