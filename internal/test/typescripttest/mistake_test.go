package typescripttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/clientworld"
)

// A mistake is one that an author of the client could make.
type mistake struct {
	title   string
	file    string // in src
	was, is string // was stands once in the file
}

var mistakes = []mistake{
	{
		"a request is timed from when its answer comes", "transport.ts",
		"return { ...result, sentAt: first }", "return { ...result, sentAt: clock.now() }",
	},
	{
		"each attempt at a request has a key of its own", "transport.ts",
		"await this.#attempt(prepared,",
		"await this.#attempt(this.#prepare(operation, parameters, crypto.randomUUID()),",
	},
	{
		"the sleep of a machine does not count", "clock.ts",
		"if (gap > step) this.#slept += gap;", "void gap;",
	},
	{
		"the losses that a heartbeat brings are not read", "keeper.ts",
		"losses.push([g, lossOf(errorOf({ code, message: detail, advice }))]);", "void [code, detail, advice];",
	},
	{
		"a grant that comes late is not looked after", "keeper.ts",
		"      await this.verify(grant);", "",
	},
	{
		"a handle that was collected leaves its lease", "keeper.ts",
		`    else this.insist("releaseLease", { path: { id } }).catch(() => {});`, "",
	},
	{
		"close leaves the session", "keeper.ts",
		`      await this.config.transport.send("deleteSession", { path: { id: session.id } }, sending);`, "",
	},
	{
		"a block that fails keeps its lease", "client.ts",
		"      await lease.release().catch(() => {}); // the failure of the work is what counts\n", "",
	},
	{
		"a lease that comes after its caller has left is kept", "acquire.ts",
		`    await this.keeper.insist("releaseLease", { path: { id } });`, "",
	},
	{
		"an effect that failed has not happened", "effect.ts",
		"if (!isA(error, NotDone)) {", "if (!isA(error, Error)) {",
	},
	{
		"a tool that failed was not done", "guarded.ts",
		"return `It may have been done in part:", "return `Not done:",
	},
	{
		"a loss behind the return of a tool is not told", "guarded.ts",
		"return loss ? `${returned(result)} ${lost(keys, loss)}` : result;", "return result;",
	},
	{
		"a run does not keep what its tools have taken", "hold.ts",
		"if (!this.isOver && !this.kept.some((one) => one.id === lease.id)) this.#kept.push(lease.again());",
		"void lease;",
	},
	{
		"the end of a run keeps its leases", "hold.ts",
		"this.take().map((lease) => lease.release())", "this.take().map(() => Promise.resolve())",
	},
	{
		"the calls beside each other do not wait", "siblings.ts",
		"if (on.size === 0) return", "if (on.size >= 0) return",
	},
	{
		"a loss does not end the signal", "keeper.ts",
		"for (const [g, why] of first) g.aborting.abort(why);", "void first;",
	},
	{
		"a lease seems to live longer than it does", "keeper.ts",
		"return Math.max(100, ttlMs / 20);", "return -2 * ttlMs;",
	},
	{
		"a block keeps its lease", "client.ts",
		"    await lease[Symbol.asyncDispose]();\n", "",
	},
	{
		"a tool that was refused may have been done", "guarded.ts",
		"const text = `Not done: ${", "const text = `It may have been done in part: ${",
	},
	{
		"an effect that is done is done again", "effect.ts",
		`if (effect.state === "done") return effect.result as T;`, "",
	},
	{
		"an effect that is done has no result", "effect.ts",
		`return effect.result as T;`, `return "" as T;`,
	},
	{
		"the outcome of an effect is not reported", "effect.ts",
		"client.keeper.insist(operation, { path: { id }, body } as RequestParameters<Settling>);",
		"Promise.resolve(void { operation, body } as unknown as RequestParameters<Settling>);",
	},
	{
		"the end of a task is not reported", "worker.ts",
		`      await report.send("ackTask", body);`, "void body;",
	},
}

// TestMistakes puts in one mistake after another: simulated worlds find each.
func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		if text := m.text(t, source()); strings.Count(text, m.was) != 1 {
			t.Errorf("%s: %s has its text %d times", m.title, m.file, strings.Count(text, m.was))
		}
	}
	if t.Failed() {
		return
	}
	if testing.Short() {
		t.Skip("needs minutes to live through worlds with each")
	}
	folder := t.TempDir()
	Build(t, folder)
	program := clientworld.Program(t)
	for _, m := range mistakes {
		t.Run(m.title, func(t *testing.T) {
			text := m.text(t, folder)
			defer put(t, folder, m.file, text)
			put(t, folder, m.file, strings.Replace(text, m.was, m.is, 1))
			out, err := worlds(t, folder, program, 0, 500).CombinedOutput()
			if _, found, _ := strings.Cut(string(out), "Violation: world "); err == nil || found == "" {
				t.Errorf("it is not found: %v\n%s", err, out)
			} else {
				t.Log(found[:strings.Index(found, "\n")])
			}
		})
	}
}

func (m *mistake) text(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "src", m.file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// put writes a file of the client, and compiles it alone.
func put(t *testing.T, folder, file, text string) {
	t.Helper()
	path := filepath.Join(folder, "src", file)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const compile = `const { transpileModule } = require("typescript"), [from, to] = process.argv.slice(1);
const compilerOptions = { module: "commonjs", target: "es2022" };
const { readFileSync, writeFileSync } = require("fs");
writeFileSync(to, transpileModule(readFileSync(from, "utf8"), { compilerOptions }).outputText);`
	run(t, folder, "node", "-e", compile, path, filepath.Join(folder, "build/src", strings.TrimSuffix(file, "ts")+"js"))
}
