package signed_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
)

// Check a signed fence at the place of a write, without a call to the server. The place keeps
// the highest fence that it has seen for the key.
func Example() {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	ring := signed.NewRing() // the server's
	statement, _, err := ring.Sign(&signed.Statement{
		Namespace: "acme", Fence: 7, Claims: []interlock.Claim{{Key: "account:12345", Mode: interlock.Exclusive}},
	}, now, signed.DefaultTTL)
	if err != nil {
		fmt.Println(err)
		return
	}

	keys := ring.KeySet(now) // published at /v1/keys
	for _, highest := range []interlock.Fence{7, 8} {
		s, err := keys.Verify(statement, now, signed.Want{Namespace: "acme", Key: "account:12345", Fence: highest})
		if errors.Is(err, &interlock.Error{Code: interlock.CodeFenced}) {
			fmt.Println("refused: a later fence was seen")
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("write under fence", s.Fence)
	}
	// Output:
	// write under fence 7
	// refused: a later fence was seen
}
