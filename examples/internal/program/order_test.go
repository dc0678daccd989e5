package program

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/tools"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// All examples run on one server, in any order, and again.
func TestAnyOrder(t *testing.T) {
	tools.Need(t, "bash", "curl", "git", "python3", "psql")
	folder, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(folder, "*", "*.sh"))
	if err != nil || len(scripts) < 10 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	mains, err := filepath.Glob(filepath.Join(folder, "*", "main.go"))
	if err != nil || len(mains) < 8 {
		t.Fatalf("%d programs, %v", len(mains), err)
	}

	shared := t.TempDir()
	server := launchtest.Start(t, launch.Config{
		DataDir: t.TempDir(), Args: []string{"--files", "example-shell-files=" + shared},
	})
	environment := append(
		append(os.Environ(), postgrestest.Start(t).Environment(t)...),
		"INTERLOCK="+launchtest.Binary(t), "INTERLOCK_URL=http://"+server.HTTP, "INTERLOCK_GRPC="+server.GRPC,
		"SHARED="+shared,
	)
	var commands [][]string
	for _, script := range scripts {
		commands = append(commands, []string{script})
	}
	bin := t.TempDir()
	var programs []string // their folders, for one build
	for _, main := range mains {
		name := filepath.Base(filepath.Dir(main))
		command := []string{filepath.Join(bin, name)}
		switch name {
		case "embedded": // is its own server
			command = append(command, "-data-dir", filepath.Join(bin, "data"))
		case "admission":
			command = append(command, "-http", server.HTTP, "-plot", "", "-starts", "20", "-budget", "500ms")
		default:
			command = append(command, "-grpc", server.GRPC)
		}
		commands = append(commands, command)
		programs = append(programs, filepath.Dir(main))
	}
	args := append([]string{"build", "-ldflags=-w", "-o", bin + "/"}, programs...)
	build := exec.CommandContext(t.Context(), "go", args...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	commands = append(commands, commands...)
	seed := rand.Uint64()
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(commands), func(i, j int) {
		commands[i], commands[j] = commands[j], commands[i]
	})
	var done []string
	for _, command := range commands {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Env, cmd.Dir = environment, t.TempDir()
		out, err := cmd.CombinedOutput()
		name := filepath.Base(filepath.Dir(command[0])) + "/" + filepath.Base(command[0])
		if err != nil {
			t.Fatalf("seed %d: %s after %s: %v\n%s", seed, name, strings.Join(done, " "), err, out)
		}
		done = append(done, name)
	}
}
