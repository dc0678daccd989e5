package view

import (
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// QuotaNames are the fields of a quota.
var QuotaNames = []string{
	"keys", "leases", "waiters", "sessions", "requests_per_s", "bytes_per_s", "documents", "state_bytes",
}

// QuotaFlag collects WHAT=N.
type QuotaFlag map[string]uint64

func (q *QuotaFlag) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		what, text, _ := strings.Cut(part, "=")
		known := false
		for _, name := range QuotaNames {
			known = known || name == what
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if !known || err != nil {
			return cli.Usagef("want WHAT=N, such as waiters=1000, where WHAT is one of %s", strings.Join(QuotaNames, ", "))
		}
		if *q == nil {
			*q = QuotaFlag{}
		}
		(*q)[what] = n
	}
	return nil
}

func (q *QuotaFlag) String() string {
	var list []string
	for _, name := range QuotaNames {
		if n, ok := (*q)[name]; ok {
			list = append(list, name+"="+strconv.FormatUint(n, 10))
		}
	}
	return strings.Join(list, ",")
}

func (q *QuotaFlag) Type() string { return "quota" }

// retentionText returns how long done effects are kept at least, if that was set.
func retentionText(d int64) string {
	if d == 0 {
		return ""
	}
	return cli.Short(cli.Millis(d))
}

// Settings is a namespace's settings in the form of the HTTP API.
type Settings struct {
	StrictOrder    bool      `json:"strict_order"`
	Closed         bool      `json:"closed"`
	NearMisses     bool      `json:"near_misses"`
	Retention      int64     `json:"effect_retention_ms,omitempty"`
	Quota          QuotaFlag `json:"quota"`
	PrincipalQuota QuotaFlag `json:"principal_quota"`
}

// settingsOf is settings of a journal in that form.
func settingsOf(s *interlock.Settings) *Settings {
	quota := func(q interlock.Quota) QuotaFlag {
		f := QuotaFlag{}
		for i, n := range []int{q.Keys, q.Leases, q.Waiters, q.Sessions, q.Requests, q.Bytes, q.Documents, q.State} {
			if n > 0 {
				f[QuotaNames[i]] = uint64(n)
			}
		}
		return f
	}
	return &Settings{
		s.StrictOrder, s.Closed, s.NearMisses, s.EffectRetention.Milliseconds(), quota(s.Quota), quota(s.PrincipalQuota),
	}
}

// Facts are the settings, each with the name of its flag.
func (s *Settings) Facts() [][2]string {
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
