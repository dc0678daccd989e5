package hook

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/hookclient"
)

// docs/limits.md has the limits of the door.
func TestLimitsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), ",", "")
	for _, row := range []string{
		fmt.Sprintf("| %.0f min, then its leases", sessionTTL.Minutes()),
		fmt.Sprintf("kept for %.0f s then released", reserve.Seconds()),
		fmt.Sprintf("up to %.0f s %.0f s by default; a body of %d MiB; ids of %d bytes; a purpose of %d bytes",
			maxWait.Seconds(), defaultWait.Seconds(), MaxBody>>20, maxSession, maxLine),
		fmt.Sprintf("has the same answer for %.0f s", sameCall.Seconds()),
		fmt.Sprintf("| files of one event | %d (`files`)", maxFiles),
		fmt.Sprintf("%d sessions each with %d agents and %d calls; %d files that an agent knows; the last writers of %d files",
			maxConversations, maxFlows, maxCalls, maxKnown, maxWritten),
		fmt.Sprintf("within %.0f min; %d at a time", skipLife.Minutes(), maxSkips),
		fmt.Sprintf("%.0f s beyond the wait", hookclient.Margin.Seconds()),
	} {
		if !strings.Contains(text, strings.ReplaceAll(row, ",", "")) {
			t.Errorf("the page lacks %q", row)
		}
	}
}
