package typescripttest

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/clientworld"
	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// transpile compiles what simulated worlds need without a look at its types: TestClient has one.
const transpile = `const { transpileModule } = require("typescript");
const { mkdirSync, readdirSync, readFileSync, writeFileSync } = require("fs");
for (const [folder, module] of [["src", "commonjs"], ["test", "esnext"]]) {
  mkdirSync("build/" + folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (!/^[^.]+[.]ts$/.test(name)) continue;
    const compilerOptions = { module, target: "es2022" };
    const { outputText } = transpileModule(readFileSync(folder + "/" + name, "utf8"), { compilerOptions });
    writeFileSync("build/" + folder + "/" + name.replace(/ts$/, "js"), outputText);
  }
}`

// part is how many worlds are lived through at once: each is a test of its own, so one that is ended has said how far
// it came.
const part = 100

// TestWorlds has clients live through simulated worlds, in which no promise may be broken. A failure names its seed,
// and the whole story of its world.
//
//	go test ./internal/test/typescripttest -run '^TestWorlds$' -short -v
func TestWorlds(t *testing.T) {
	from, to := search.SeedsOfNight(t, 0, 100, 500, 10_000)
	folder := t.TempDir()
	stage(t, folder, tools.Overlaid(t, "clients/typescript"))
	run(t, folder, "node", "-e", transpile)
	modules(t, folder)
	worlds, program := filepath.Join(folder, "build/test/worlds.js"), clientworld.Program(t)
	for ; from < to && !t.Failed(); from += part {
		first, end := strconv.FormatUint(from, 10), strconv.FormatUint(min(from+part, to), 10)
		t.Run(first, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "node", worlds, program, first, end).CombinedOutput()
			if err != nil {
				_, broken, _ := strings.Cut(string(out), "Violation: ")
				broken, _, _ = strings.Cut(broken, "\n")
				t.Fatalf("%s: %v\n%s", broken, err, out)
			}
		})
	}
}
