package typescripttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/interlockdev/interlock/internal/test/frameworkpage"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// TestFormat checks that the sources are formatted, and the examples with frameworks.
func TestFormat(t *testing.T) {
	folder := t.TempDir()
	stage(t, folder, source())
	examples, err := filepath.Glob(filepath.Join(frameworkpage.Folder(), "*.ts"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, example := range examples {
		text, err := os.ReadFile(example)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "src", filepath.Base(example)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, folder, filepath.Join(folder, "node_modules/.bin/prettier"), "--check", ".")
}

// snippets writes the blocks of docs/typescript.md that are not run into files, so that they are compiled.
func snippets(t *testing.T, folder string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(source(), "../../docs/typescript.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("docs/typescript.md has %d blocks", len(blocks))
	}
	for i, block := range blocks {
		text := prelude + string(block[1]) + "\nexport {};\n"
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("test/page%d.ts", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// prelude declares what the blocks take for granted.
const prelude = `import { Client, NotDone, Stale, guarded, put, seen } from "../src/index.js";
import { guardTools } from "../src/ai-sdk.js";
declare const client: Client;
declare const refundTool: { execute(input: { account_id: string }): string };
declare const readTool: { execute(input: { account_id: string }): string };
declare const model: unknown;
declare const generateText: (options: { model: unknown; tools: object; prompt: string }) => Promise<{ text: string }>;
declare const searchTool: { execute(input: { words: string }): string };
declare const changed: unknown;
declare const chargeFee: (more: { fence: string; signal: AbortSignal }) => Promise<void>;
type With = { fence: string; signal: AbortSignal };
declare const bank: { refund(id: string, cents: number, more: With): Promise<object> };
declare const stripe: { charge(more: { idempotencyKey: string }): Promise<{ id: string }> };
declare const stop: AbortController;
void [Client, NotDone, Stale, guarded, put, seen, client, changed, chargeFee, bank, stripe, stop];
void [guardTools, readTool, refundTool, searchTool, model, generateText];
`

// TestClient runs the tests of the client, each as a test of its own.
func TestClient(t *testing.T) {
	folder := t.TempDir()
	stage(t, folder, source())
	snippets(t, folder)
	compile(t, folder, "--noUnusedLocals", "false") // the blocks end before they use all
	files, err := filepath.Glob(filepath.Join(folder, "build/test/*.test.js"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests in %s: %v", folder, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	reporter := filepath.Join(folder, "build/test/reporter.js")
	args := []string{"--test", "--test-concurrency=4", "--test-timeout=120000", "--test-reporter=" + reporter}
	cmd := exec.CommandContext(ctx, "node", append(args, files...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "INTERLOCK_BINARY="+launchtest.Binary(t), "NO_COLOR=1")
	if Report(t, cmd) == 0 {
		t.Error("no test passed")
	}
}
