package mcp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

// docs/limits.md has the limits of the door.
func TestLimitsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), ",", "")
	for _, row := range []string{
		fmt.Sprintf("| %.0f s with progress every %.0f s at least; `acquire` waits for %.0f s by default",
			maxCall.Seconds(), reportEvery.Seconds(), defaultAcquireWait.Seconds()),
		fmt.Sprintf("| %d keys of `acquire` %d of `look`", interlock.MaxClaims, maxLook),
		fmt.Sprintf("and %d KiB of documents", maxDocuments>>10),
		fmt.Sprintf("| %d then those of more than %.0f h ago", rememberPlaces, rememberFor.Hours()),
	} {
		if !strings.Contains(text, row) {
			t.Errorf("the page lacks %q", row)
		}
	}
}
