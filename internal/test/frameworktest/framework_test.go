package frameworktest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/pythontest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// limit bounds the test of a framework; it is generous, because test machines are slow.
const limit = 3 * time.Minute

// topics are the files of tests that a framework has, test_TOPIC.py in clients/python/frameworks.
var topics = map[string][]string{
	"adk":             {"adk", "adk_session"},
	"agent-framework": {"agent_framework"},
	"langchain":       {"langchain", "langgraph"},
	"openai-agents":   {"openai_agents"},
	"pydantic-ai":     {"pydantic_ai"},
}

// modules are those of the client that a framework has.
var modules = map[string][]string{
	"adk":             {"interlock.ext.adk"},
	"agent-framework": {"interlock.ext.agent_framework"},
	"langchain":       {"interlock.ext.langchain", "interlock.ext.langgraph"},
	"openai-agents":   {"interlock.ext.openai_agents"},
	"pydantic-ai":     {"interlock.ext.pydantic_ai"},
}

// TestFrameworks carries out the cases with each framework, and checks that the types of its extra are complete. A
// proxy where nothing listens keeps it from the network.
func TestFrameworks(t *testing.T) {
	tools.Need(t, tools.PythonVenv, tools.Frameworks, "node")
	locks, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(locks) < 5 {
		t.Fatalf("%d frameworks, %v", len(locks), err)
	}
	binary, client := launchtest.Binary(t), filepath.Join(tools.Root(), "clients/python")
	for _, lock := range locks {
		name := strings.TrimSuffix(filepath.Base(lock), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			python := filepath.Join(tools.Root(), filepath.Dir(tools.Frameworks), name, "bin/python")
			path := []string{filepath.Join(client, "src"), filepath.Join(client, "frameworks"), tools.PythonLib()}
			env := append(
				os.Environ(), "PYTHONPATH="+strings.Join(path, ":"), "PYTHONDONTWRITEBYTECODE=1", "HOME="+t.TempDir(),
				"INTERLOCK_BINARY="+binary, "https_proxy=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
				tools.PathOf(python),
			)
			command := func(name string, args ...string) *exec.Cmd {
				cmd := exec.CommandContext(ctx, name, args...)
				cmd.Dir, cmd.Env = client, env
				return cmd
			}
			tests := []string{"-m", "pytest", "-p", "no:cacheprovider", "-v", "-rN"}
			for _, topic := range topics[name] {
				tests = append(tests, "frameworks/test_"+topic+".py")
			}
			if passed := pythontest.Report(t, command(python, tests...)); passed < len(topics[name]) {
				t.Errorf("only %d tests passed", passed)
			}
			for _, module := range modules[name] {
				out, err := command("node", tools.Pyright(), "--verifytypes", module, "--ignoreexternal").CombinedOutput()
				if err != nil || !strings.Contains(string(out), "completeness score: 100%") {
					t.Errorf("%s: %v\n%s", module, err, out)
				}
			}
		})
	}
}
