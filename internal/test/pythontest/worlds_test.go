package pythontest

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock/internal/test/clientworld"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// TestWorlds has the client live in simulated worlds. A failure names its seed, and the whole story of its world.
//
//	go test ./internal/test/pythontest -run '^TestWorlds$' -short
func TestWorlds(t *testing.T) {
	tools.Need(t, tools.PythonVenv)
	pythons, err := tools.Pythons()
	if err != nil {
		t.Fatal(err)
	}
	from, to := search.SeedsOfNight(t, 0, 100, 500, 10_000)
	cmd := command(
		t, pythons[len(pythons)-1].Path, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rN", "-x",
		"tests/test_world.py",
	)
	seeds := fmt.Sprintf("INTERLOCK_TEST_WORLDS=%d:%d", from, to)
	cmd.Env = append(cmd.Env, "INTERLOCK_TEST_WORLD="+clientworld.Program(t), "PYTHONHASHSEED=0", seeds)
	Report(t, cmd)
}
