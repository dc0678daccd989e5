package prose

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

func TestTheBetterStrategyIsAdvised(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts interlock.Contention
		action interlock.Action
		words  string
	}{
		{"nothing happened", interlock.Contention{}, "", ""},
		{"too few to tell", interlock.Contention{Commits: 1, Conflicts: 18}, "", ""},
		{
			"one in four",
			interlock.Contention{Pattern: "account", Commits: 15, Conflicts: 5},
			interlock.ActWait,
			"5 of 20 commits by version to account keys were stale",
		},
		{"one in five", interlock.Contention{Commits: 16, Conflicts: 4}, "", ""},
		{
			"no wait at all",
			interlock.Contention{Leased: 20, Leases: 20},
			interlock.ActRetry,
			"0 of 20 leases of such keys had to wait",
		},
		{
			"one wait in twenty",
			interlock.Contention{Pattern: "a b", Leased: 20, Leases: 20, Waited: 1},
			interlock.ActRetry,
			`"a b" keys`,
		},
		{"two waits in twenty", interlock.Contention{Leased: 20, Leases: 20, Waited: 2}, "", ""},
		{"leases that guard no documents", interlock.Contention{Leased: 19, Leases: 1000}, "", ""},
		{
			"leases that the pattern demands",
			interlock.Contention{Leased: 20, Leases: 20, Write: interlock.WriteLease},
			"",
			"",
		},
		{
			"leases keep apart who would meet",
			interlock.Contention{Commits: 3, Conflicts: 1, Leased: 100, Leases: 100},
			"",
			"",
		},
	} {
		got := ForContention(&c.counts)
		if got.Action != c.action || !strings.Contains(got.Message, c.words) {
			t.Errorf("%s: %+v", c.name, got)
		}
		refused := For(&engine.Effect{Outcome: engine.Refused, Code: interlock.CodeStale, Contention: &c.counts})
		if refused.Action != interlock.ActReRead || !strings.HasSuffix(refused.Message, got.Message) {
			t.Errorf("%s: who is refused is told %+v", c.name, refused)
		}
	}
}
