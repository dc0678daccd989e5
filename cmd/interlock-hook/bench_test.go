package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// BenchmarkEvent measures an event of an agent as the agent sees it: from the start of the real binary to its end,
// with a server that has its journal on this machine's disk. Kinds of runs alternate, so that other load of the machine
// meets all of them: a program that does nothing (bare), the event before an edit of a file that is free (before), and
// the one after it (after). Each has its median and 99th percentile in milliseconds.
func BenchmarkEvent(b *testing.B) {
	own := build(b)
	nothing := filepath.Join(b.TempDir(), "nothing.go")
	if err := os.WriteFile(nothing, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	bare := buildFrom(b, nothing)
	server := launchtest.Start(b, launch.Config{DataDir: b.TempDir()})
	work := filepath.Join(b.TempDir(), "web")
	if err := os.MkdirAll(filepath.Join(work, ".git"), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, ".git", "HEAD"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	env := append(os.Environ(), "INTERLOCK_URL=http://"+server.HTTP)
	input := filepath.Join(b.TempDir(), "event")
	run := func(program, event string, i int) time.Duration {
		body := fmt.Sprintf(
			`{"session_id":"bench","hook_event_name":%q,"cwd":%q,"tool_name":"Edit","tool_use_id":"%d",`+
				`"tool_input":{"file_path":"%s/%d.go","new_string":%q}}`,
			event, work, i, work, i, strings.Repeat("x", 2000),
		)
		if err := os.WriteFile(input, []byte(body), 0o600); err != nil {
			b.Fatal(err)
		}
		in, err := os.Open(input)
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		var out strings.Builder
		cmd := exec.Command(program, "claude-code")
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, in, &out, &out
		begin := time.Now()
		err = cmd.Run()
		took := time.Since(begin)
		if err != nil || out.Len() > 0 {
			b.Fatalf("%q (%v)", out.String(), err)
		}
		return took
	}
	run(own, "PreToolUse", -1) // opens the session
	times := map[string][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		times["bare"] = append(times["bare"], run(bare, "", i))
		times["before"] = append(times["before"], run(own, "PreToolUse", i))
		times["after"] = append(times["after"], run(own, "PostToolUse", i))
	}
	for kind, list := range times {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, kind+"-p50-ms")
		b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, kind+"-p99-ms")
	}
	b.ReportMetric(0, "ns/op") // of all three together: it has no meaning
}
