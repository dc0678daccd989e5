package pythontest

import (
	"bufio"
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// Report runs a command that runs "pytest -v", reports each of its tests as a test of its own, and returns how many
// passed. A line of pytest ends in PASSED or FAILED.
func Report(t *testing.T, cmd *exec.Cmd) (passed int) {
	t.Helper()
	out, failed := cmd.CombinedOutput()
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.Contains(fields[0], "::") {
			continue
		}
		t.Run(fields[0], func(t *testing.T) {
			if fields[1] != "PASSED" {
				t.Error(fields[1])
				return
			}
			passed++
		})
	}
	if failed != nil {
		t.Errorf("%d tests passed: %v\n%s", passed, failed, out)
	}
	return passed
}
