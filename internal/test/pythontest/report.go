package pythontest

import (
	"bufio"
	"bytes"
	"os/exec"
	"regexp"
	"testing"
)

// line is what pytest writes about a test: the name, which may have blanks, the result and how far it has come.
var line = regexp.MustCompile(`^(\S+::.*) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)( .*)?$`)

// Report runs a command that runs "pytest -v", reports each of its tests as a test of its own, and returns how many
// passed. A line of pytest ends in PASSED or FAILED.
func Report(t *testing.T, cmd *exec.Cmd) (passed int) {
	t.Helper()
	out, failed := cmd.CombinedOutput()
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		t.Run(m[1], func(t *testing.T) {
			if m[2] != "PASSED" {
				t.Error(m[2])
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
