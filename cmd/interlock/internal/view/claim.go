package view

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// ClaimText returns what is wanted of the key.
func ClaimText(c *api.Claim) string { return cli.ModeText(c.Mode, c.Count) }

// claimOf converts a claim to the form of the HTTP API.
func claimOf(c interlock.Claim) api.Claim {
	return api.Claim{Key: c.Key, Mode: c.Mode.String(), Count: cli.CountOf(c.Mode, c.Count)}
}

// ClaimsOf converts claims of a request to the form of the HTTP API.
func ClaimsOf(list []interlock.Claim) []api.ClaimRequest {
	claims := make([]api.ClaimRequest, len(list))
	for i := range list {
		claims[i] = api.ClaimRequest(claimOf(list[i]))
	}
	return claims
}

// ClaimedKeys returns the keys of claims of an answer.
func ClaimedKeys(claims []api.Claim) []interlock.Key {
	keys := make([]interlock.Key, len(claims))
	for i := range claims {
		keys[i] = claims[i].Key
	}
	return keys
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
