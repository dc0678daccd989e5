package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
)

// claim is a claim in the form of the HTTP API: with a mode, or with a count, named after what it
// counts.
type claim struct {
	Key  interlock.Key `json:"key"`
	Mode string        `json:"mode,omitempty"`
	amount
}

// amount is the count of a claim, if it has one.
type amount struct {
	Permits uint32 `json:"permits,omitempty"`
	Parties uint32 `json:"parties,omitempty"`
	Parts   uint32 `json:"parts,omitempty"`
}

func amountOf(mode interlock.Mode, n uint32) (c amount) {
	switch mode {
	case interlock.Permits:
		c.Permits = n
	case interlock.Barrier:
		c.Parties = n
	case interlock.Member:
		c.Parts = n
	}
	return c
}

func (c amount) number() uint32 { return max(c.Permits, c.Parties, c.Parts) }

// what is wanted or had of a key, for people: "exclusive", "2 permits", "1 of 3
// parties".
func (c amount) what(mode string) string {
	switch {
	case c.Permits > 0:
		return count(int(c.Permits), "permit", "permits")
	case c.Parties > 0:
		return "1 of " + count(int(c.Parties), "party", "parties")
	case c.Parts > 0:
		return "member of " + count(int(c.Parts), "part", "parts")
	}
	return orDash(clean(mode))
}

func (c *claim) what() string { return c.amount.what(c.Mode) }

// claimOf is a claim in that form.
func claimOf(c interlock.Claim) claim {
	return claim{Key: c.Key, Mode: c.Mode.String(), amount: amountOf(c.Mode, c.Count)}
}

func claimsOf(list []interlock.Claim) []claim {
	claims := make([]claim, len(list))
	for i := range list {
		claims[i] = claimOf(list[i])
	}
	return claims
}

func keysOf(claims []interlock.Claim) []interlock.Key {
	keys := make([]interlock.Key, len(claims))
	for i := range claims {
		keys[i] = claims[i].Key
	}
	return keys
}

func joinKeys(keys []interlock.Key, between string) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(string(key))
	}
	return b.String()
}

// claimFlag collects KEY=WHAT, where WHAT is a mode or a number of permits. A key
// may have a = of its own, so the last one counts.
type claimFlag []interlock.Claim

func (f *claimFlag) Set(s string) error {
	i := strings.LastIndexByte(s, '=')
	if i <= 0 {
		return usage("want KEY=WHAT, such as ledger:2026=shared or org:acme/runs=2")
	}
	c := interlock.Claim{Key: interlock.Key(s[:i])}
	what := s[i+1:]
	if mode, ok := interlock.ParseMode(what); ok && !mode.Counts() {
		c.Mode = mode
	} else if n, err := strconv.ParseUint(what, 10, 32); err == nil && n >= 1 && n <= interlock.MaxCount {
		c.Mode, c.Count = interlock.Permits, uint32(n)
	} else {
		return usage(
			"%s: want a mode (%s) or a number of permits, found %q", clean(s[:i]), strings.Join(modes(), ", "), clean(what),
		)
	}
	*f = append(*f, c)
	return nil
}

func (f *claimFlag) String() string {
	list := make([]string, len(*f))
	for i, c := range *f {
		if list[i] = string(c.Key) + "=" + c.Mode.String(); c.Mode.Counts() {
			list[i] = fmt.Sprintf("%s=%d", c.Key, c.Count)
		}
	}
	return strings.Join(list, " ")
}

func (f *claimFlag) Type() string { return "KEY=WHAT" }

// modes are those that a claim can name.
func modes() (names []string) {
	for m := interlock.Exclusive; m.String() != ""; m-- {
		names = append(names, m.String())
	}
	return names
}

// countFlag is a flag for a number of permits, parties or parts: 1 or more.
type countFlag uint32

func (n *countFlag) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil || v < 1 || v > interlock.MaxCount {
		return usage("want a number from 1 to %d", interlock.MaxCount)
	}
	*n = countFlag(v)
	return nil
}

func (n *countFlag) String() string {
	if *n == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*n), 10)
}

func (n *countFlag) Type() string { return "number" }
