package view

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Claim is a claim in the form of the HTTP API: with a mode, or with a count, named after what it
// counts.
type Claim struct {
	Key  interlock.Key `json:"key"`
	Mode string        `json:"mode,omitempty"`
	cli.Amount
}

// What describes what is wanted of the key.
func (c *Claim) What() string { return c.Amount.What(c.Mode) }

// claimOf is a claim in that form.
func claimOf(c interlock.Claim) Claim {
	return Claim{Key: c.Key, Mode: c.Mode.String(), Amount: cli.AmountOf(c.Mode, c.Count)}
}

// ClaimsOf converts claims to the form of the HTTP API.
func ClaimsOf(list []interlock.Claim) []Claim {
	claims := make([]Claim, len(list))
	for i := range list {
		claims[i] = claimOf(list[i])
	}
	return claims
}

// KeysOf returns the keys of claims.
func KeysOf(claims []interlock.Claim) []interlock.Key {
	keys := make([]interlock.Key, len(claims))
	for i := range claims {
		keys[i] = claims[i].Key
	}
	return keys
}

// JoinKeys joins keys, with a separator between them.
func JoinKeys(keys []interlock.Key, between string) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(string(key))
	}
	return b.String()
}

// Modes are those that a claim can name.
func Modes() (names []string) {
	for m := interlock.Exclusive; m.String() != ""; m-- {
		names = append(names, m.String())
	}
	return names
}
