package frameworktest

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/frameworkpage"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/pythontest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// framework is what there is for a framework.
type framework struct {
	modules  []string // of interlock.ext
	tests    []string // files test_NAME.py in clients/python/frameworks
	examples []string // files race_NAME.py in examples/frameworks
}

// frameworks have the names of their requirements, testdata/NAME.txt.
var frameworks = map[string]framework{
	"adk":              {[]string{"adk"}, []string{"adk", "adk_session"}, []string{"adk"}},
	"agent-framework":  {[]string{"agent_framework"}, []string{"agent_framework"}, []string{"agent_framework"}},
	"claude-agent-sdk": {examples: []string{"claude_agent_sdk"}},
	"crewai":           {examples: []string{"crewai"}},
	"langchain": {
		[]string{"langchain", "langgraph"}, []string{"langchain", "langgraph"}, []string{"langchain", "langgraph"},
	},
	"openai-agents": {[]string{"openai_agents"}, []string{"openai_agents"}, []string{"openai_agents"}},
	"pydantic-ai":   {[]string{"pydantic_ai"}, []string{"pydantic_ai"}, []string{"pydantic_ai", "pydantic_ai_commit"}},
}

// command makes the commands of a framework. A proxy where nothing listens keeps them from the network.
func command(t *testing.T, name, folder string, env ...string) func(program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	t.Cleanup(cancel)
	python := filepath.Join(tools.Root(), filepath.Dir(tools.Frameworks), name, "bin/python")
	client := filepath.Join(tools.Root(), "clients/python")
	path := []string{filepath.Join(client, "src"), filepath.Join(client, "frameworks"), tools.PythonLib()}
	env = append(env, "PYTHONPATH="+strings.Join(path, ":"), "PYTHONDONTWRITEBYTECODE=1", "HOME="+t.TempDir(),
		"https_proxy=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "OTEL_SDK_DISABLED=true",
		"CREWAI_DISABLE_TELEMETRY=true", tools.PathOf(python))
	return func(program string, args ...string) *exec.Cmd {
		if program == "python" {
			program = python
		}
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env = filepath.Join(tools.Root(), folder), append(os.Environ(), env...)
		return cmd
	}
}

// TestFrameworks carries out the cases with each framework, and checks that the types of its extra are complete.
func TestFrameworks(t *testing.T) {
	tools.Need(t, tools.PythonVenv, tools.Frameworks, "node")
	binary := launchtest.Binary(t)
	for name, of := range frameworks {
		if of.tests == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := command(t, name, "clients/python", "INTERLOCK_BINARY="+binary)
			args := []string{"-m", "pytest", "-p", "no:cacheprovider", "-v", "-rN"}
			for _, test := range of.tests {
				args = append(args, "frameworks/test_"+test+".py")
			}
			if passed := pythontest.Report(t, run("python", args...)); passed < len(of.tests) {
				t.Errorf("only %d tests passed", passed)
			}
			for _, module := range of.modules {
				cmd := run("node", tools.Pyright(), "--verifytypes", "interlock.ext."+module, "--ignoreexternal")
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "completeness score: 100%") {
					t.Errorf("%s: %v\n%s", module, err, out)
				}
			}
		})
	}
}

// TestExamples runs the examples of each framework, and compares what they print with their page.
func TestExamples(t *testing.T) {
	tools.Need(t, tools.Frameworks)
	for name, of := range frameworks {
		for _, example := range of.examples {
			t.Run(example, func(t *testing.T) {
				t.Parallel()
				server := launchtest.Start(t, launch.Config{DataDir: t.TempDir()})
				run := command(t, name, "examples/frameworks", "INTERLOCK_URL=http://"+server.HTTP)
				cmd := run("python", "race_"+example+".py")
				var complaints bytes.Buffer
				cmd.Stderr = &complaints
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s%s", err, out, complaints.Bytes())
				}
				frameworkpage.Check(t, example, string(out))
			})
		}
	}
}

// Each file of requirements is a framework that is tested, and each example of the page is one that is run.
func TestAllAreRun(t *testing.T) {
	locks, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, lock := range locks {
		locks[i] = strings.TrimSuffix(filepath.Base(lock), ".txt")
	}
	if names := slices.Sorted(maps.Keys(frameworks)); !slices.Equal(locks, names) {
		t.Errorf("there are requirements of %q, and %q are tested", locks, names)
	}
	var run []string
	for _, of := range frameworks {
		for _, example := range of.examples {
			run = append(run, "race_"+example+".py")
		}
	}
	shown := frameworkpage.Examples(t, ".py")
	slices.Sort(run)
	slices.Sort(shown)
	if !slices.Equal(run, shown) {
		t.Errorf("the page shows %q, and %q are run", shown, run)
	}
}
