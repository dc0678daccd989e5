package view

import (
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
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
	return cli.ShortMillis(d)
}

// quotaText returns the limits of a quota as --quota takes them.
func quotaText(q *api.Quota) string {
	if q == nil {
		return ""
	}
	flag := QuotaFlag{}
	for i, n := range []int{q.Keys, q.Leases, q.Waiters, q.Sessions, q.Requests, q.Bytes, q.Documents, q.State} {
		if n > 0 {
			flag[QuotaNames[i]] = uint64(n)
		}
	}
	return flag.String()
}

// settingsOf converts settings of a journal to the form of the HTTP API.
func settingsOf(s *interlock.Settings) *api.SettingsRequest {
	quota := func(q interlock.Quota) *api.Quota {
		return &api.Quota{
			Keys: q.Keys, Leases: q.Leases, Waiters: q.Waiters, Sessions: q.Sessions, Requests: q.Requests, Bytes: q.Bytes,
			Documents: q.Documents, State: q.State,
		}
	}
	return &api.SettingsRequest{
		StrictOrder: s.StrictOrder, Closed: s.Closed, NearMisses: s.NearMisses,
		EffectRetention: s.EffectRetention.Milliseconds(), Quota: quota(s.Quota), PrincipalQuota: quota(s.PrincipalQuota),
	}
}

// SettingsFacts are the settings of a namespace, each with the name of its flag.
func SettingsFacts(s *api.SettingsRequest) [][2]string {
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
		{"effect-retention", retentionText(s.EffectRetention)},
		{"quota", quotaText(s.Quota)},
		{"principal-quota", quotaText(s.PrincipalQuota)},
	}
}
