package typescripttest

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/interlockdev/interlock/internal/test/clientworld"
	"github.com/interlockdev/interlock/internal/test/search"
)

// TestWorlds has clients live through simulated worlds, in which no promise may be broken.
func TestWorlds(t *testing.T) {
	from, to := search.SeedsOfNight(t, 0, 100, 500, 10_000)
	folder := t.TempDir()
	Build(t, folder)
	if out, err := worlds(t, folder, clientworld.Program(t), from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// worlds returns a command that lives through the worlds of seeds with the client in folder/build.
func worlds(t *testing.T, folder, program string, from, to uint64) *exec.Cmd {
	args := []string{filepath.Join(folder, "build/test/worlds.js"), program}
	args = append(args, strconv.FormatUint(from, 10), strconv.FormatUint(to, 10))
	return exec.CommandContext(t.Context(), "node", args...)
}
