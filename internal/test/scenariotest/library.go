package scenariotest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/internal/test/typescripttest"
)

// Library is a client library with its runner.
type Library struct {
	Name    string
	streams bool // it speaks the session stream, not HTTP
	env     []string
	// command returns the program of the runner, and what precedes its argument.
	command func(t *testing.T) []string
}

// Libraries are those that carry out the scenarios.
func Libraries() []*Library {
	client := filepath.Join(tools.Root(), "clients/python")
	path := []string{"PYTHONPATH=" + filepath.Join(client, "src"), "PYTHONDONTWRITEBYTECODE=1"}
	python := func(runner string) func(*testing.T) []string {
		return func(t *testing.T) []string {
			tools.Need(t, tools.PythonVenv)
			pythons, err := tools.Pythons()
			if err != nil {
				t.Fatal(err)
			}
			newest := pythons[len(pythons)-1].Path
			return []string{newest, "-W", "error", filepath.Join(client, "tests", runner)}
		}
	}
	return []*Library{
		{Name: "go", streams: true, env: []string{runnerVariable + "=1"}, command: func(t *testing.T) []string {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			return []string{self}
		}},
		{Name: "python", env: path, command: python("scenario.py")},
		{Name: "python asyncio", env: path, command: python("scenario_async.py")},
		{Name: "typescript", command: func(t *testing.T) []string {
			tools.Need(t, "node", tools.TypeScriptCompiler)
			return []string{"node", filepath.Join(typeScript.folder, "build/test/scenario.js")}
		}},
	}
}

// typeScript is the client in TypeScript with its runner, once it is built.
var typeScript struct {
	once   sync.Once
	folder string
}

// Build builds the runners that have to be built.
func Build(t *testing.T) {
	typeScript.once.Do(func() {
		t.Run("build/typescript", func(t *testing.T) {
			tools.Need(t, "node", tools.TypeScriptCompiler)
			folder, err := os.MkdirTemp("", "interlock-typescript-")
			if err != nil {
				t.Fatal(err)
			}
			typeScript.folder = folder
			typescripttest.Build(t, folder)
		})
	})
}
