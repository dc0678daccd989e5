package pythontest

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// line is what pytest writes about a test: the name, which may have blanks, the result and how far it has come.
var line = regexp.MustCompile(`^(\S+::.*) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)( .*)?$`)

// Report runs a command that runs "pytest -v", reports each of its tests as a test of its own as soon as it ends, and
// returns how many passed. A line of pytest ends in PASSED or FAILED.
func Report(t *testing.T, cmd *exec.Cmd) (passed int) {
	t.Helper()
	printed, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for lines, text := bufio.NewReader(printed), ""; err == nil; {
		text, err = lines.ReadString('\n')
		out.WriteString(text)
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
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
	if err := cmd.Wait(); err != nil {
		t.Errorf("%d tests passed: %v\n%s", passed, err, out.String())
	}
	return passed
}
