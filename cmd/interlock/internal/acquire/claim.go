package acquire

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/view"
)

// ClaimFlag collects KEY=WHAT, where WHAT is a mode or a number of permits. A key
// may have a = of its own, so the last one counts.
type ClaimFlag []interlock.Claim

func (f *ClaimFlag) Set(s string) error {
	i := strings.LastIndexByte(s, '=')
	if i <= 0 {
		return cli.Usagef("want KEY=WHAT, such as ledger:2026=shared or org:acme/runs=2")
	}
	c := interlock.Claim{Key: interlock.Key(s[:i])}
	what := s[i+1:]
	if mode, ok := interlock.ParseMode(what); ok && !mode.Counts() {
		c.Mode = mode
	} else if n, err := strconv.ParseUint(what, 10, 32); err == nil && n >= 1 && n <= interlock.MaxCount {
		c.Mode, c.Count = interlock.Permits, uint32(n)
	} else {
		return cli.Usagef(
			"%s: want a mode (%s) or a number of permits, found %q", cli.Clean(s[:i]), strings.Join(view.Modes(), ", "),
			cli.Clean(what),
		)
	}
	*f = append(*f, c)
	return nil
}

func (f *ClaimFlag) String() string {
	list := make([]string, len(*f))
	for i, c := range *f {
		if list[i] = string(c.Key) + "=" + c.Mode.String(); c.Mode.Counts() {
			list[i] = fmt.Sprintf("%s=%d", c.Key, c.Count)
		}
	}
	return strings.Join(list, " ")
}

func (f *ClaimFlag) Type() string { return "KEY=WHAT" }
