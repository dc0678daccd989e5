package typescripttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// Reporter compiles test/reporter.ts, which Node takes as a reporter of its tests, and returns its file.
func Reporter(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	stage(t, folder, source())
	run(
		t, folder, filepath.Join(folder, "node_modules/.bin/tsc"), "--target", "es2022", "--module", "nodenext",
		"--types", "node", "--strict", "--skipLibCheck", "--outDir", "build/test", "test/reporter.ts",
	)
	modules(t, folder)
	return filepath.Join(folder, "build/test/reporter.js")
}

// result is a line of test/reporter.ts.
type result struct {
	File, Name, Error string
	Passed            bool
}

// Report runs a command that runs tests on Node with that reporter, reports each as a test of its own, and returns
// how many passed.
func Report(t *testing.T, cmd *exec.Cmd) (passed int) {
	t.Helper()
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, failed := cmd.Output()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("the reporter prints %q: %v", lines.Text(), err)
		}
		t.Run(r.File+"/"+r.Name, func(t *testing.T) {
			if !r.Passed {
				t.Error(r.Error)
				return
			}
			passed++
		})
	}
	if failed != nil {
		t.Errorf("%d tests passed: %v\n%s", passed, failed, complaints.Bytes())
	}
	return passed
}
