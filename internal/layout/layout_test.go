package layout

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestImportsGoOneWay(t *testing.T) {
	problems, err := Imports(root)
	report(t, problems, err)
}

func TestEngineIsPure(t *testing.T) {
	problems, err := Engine(root)
	report(t, problems, err)
}

func TestEngineSpeaksInMessages(t *testing.T) {
	problems, err := English(root)
	report(t, problems, err)
	got, err := checkEnglish(map[string]string{
		"engine/a.go": `package engine
var a = "key is held: wait"
var b = store.Text{Name: "agent to wait for"}
var c = errors.New("engine: the entry is cut")
func f() { panic("this is a mistake"); _ = g("say it in words") }`,
	})
	if err != nil || len(got) != 2 {
		t.Errorf("found %q, %v", got, err)
	}
}

func TestStatelessFiles(t *testing.T) {
	problems, err := Stateless(root)
	report(t, problems, err)
}

func TestTree(t *testing.T) {
	problems, err := Tree(root)
	report(t, problems, err)
}

func report(t *testing.T, problems []string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// Every rule must be able to fail: these are mistakes that it has to find.
func TestPurityRefuses(t *testing.T) {
	tests := []struct {
		name, source, want string
	}{
		{"clock", `import "time"; var _ = time.Now`, "uses time.Now"},
		{"elapsed time", `import "time"; func f(t time.Duration) { _ = time.Since }`, "uses time.Since"},
		{"timer", `import "time"; func f() { time.AfterFunc(1, nil) }`, "uses time.AfterFunc"},
		{"renamed import", `import clock "time"; func f() { clock.Sleep(1) }`, "uses time.Sleep"},
		{"wall time type", `import "time"; type t struct{ at time.Time }`, "uses time.Time"},
		{"randomness", `import "math/rand/v2"; var _ = rand.Int()`, `imports "math/rand/v2"`},
		{"seeded hash", `import "hash/maphash"; var _ = maphash.MakeSeed`, `imports "hash/maphash"`},
		{"lock", `import "sync"; var _ sync.Mutex`, `imports "sync"`},
		{"files", `import "os"; var _ = os.Open`, `imports "os"`},
		{"network", `import "net"; var _ net.Conn`, `imports "net"`},
		{"logging", `import "log/slog"; var _ = slog.Info`, `imports "log/slog"`},
		{"pipes", `import "io"; var _ = io.Pipe`, "uses io.Pipe"},
		{"printing", `import "fmt"; func f() { fmt.Println() }`, "uses fmt.Println"},
		{"builtin print", `func f() { println() }`, "prints"},
		{"goroutine", `func f() { go f() }`, "starts a goroutine"},
		{"channel", `var c chan int`, "has a channel"},
		{"send", `func f[C ~chan<- int](c C) { c <- 1 }`, "sends on a channel"},
		{"select", `func f() { select {} }`, "selects"},
		{"float type", `type t struct{ x float64 }`, "uses the type float64"},
		{"float literal", `const half = 0.5`, "uses the type untyped float"},
		{"float by division", `import "math"; var x = math.Sqrt(2)`, "uses the type"},
		{"map walk", `func f(m map[string]int) { for range m {} }`, "walks a map"},
		{"named map walk", `type m map[string]int; func f(x m) { for k := range x { _ = k } }`, "walks a map"},
		{"generic map walk", `func f[M ~map[string]int](x M) { for k := range x { _ = k } }`, "walks a map"},
		{"unsorted keys", `import "maps"; func f(m map[string]int) { for k := range maps.Keys(m) { _ = k } }`, "walks a map"},
		{
			"collected keys",
			`import ("maps"; "slices"); func f(m map[string]int) []string { return slices.Collect(maps.Keys(m)) }`,
			"walks a map",
		},
		{
			"collected and used before sorting",
			`import ("maps"; "slices"); func f(m map[string]int) { l := slices.Collect(maps.Keys(m)); g(l); slices.Sort(l) }; func g([]string) {}`,
			"walks a map",
		},
		{
			"collected and another list sorted",
			`import ("maps"; "slices"); func f(m map[string]int, o []string) { l := slices.Collect(maps.Keys(m)); slices.Sort(o); _ = l }`,
			"walks a map",
		},
		{
			"called by hand", `import "maps"; func f(m map[string]int) { maps.Keys(m)(func(string) bool { return false }) }`,
			"walks a map",
		},
		{
			"deleting that remembers",
			`import "maps"; func f(m map[string]int) (s []string) { maps.DeleteFunc(m, func(k string, _ int) bool { s = append(s, k); return true }); return s }`,
			"deletes from a map",
		},
		{"all entries", `import "maps"; func f(m map[string]int) { for k := range maps.All(m) { _ = k } }`, "uses maps.All"},
		{"global state", `var n int; func f() { n++ }`, "changes the package's variable n"},
		{"state in a global map", `var m = map[string]int{}; func f() { m["x"] = 1 }`, "changes the package's variable m"},
		{
			"state behind a global pointer", `type t struct{ n int }; var p = &t{}; func f() { p.n = 1 }`,
			"changes the package's variable p",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems, err := checkPurity(root, map[string]string{"engine/bad.go": "package engine; " + tt.source})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, tt.want) }) {
				t.Errorf("found %q, want %q", problems, tt.want)
			}
		})
	}
}

func TestPurityAccepts(t *testing.T) {
	problems, err := checkPurity(root, map[string]string{"engine/good.go": `package engine
import ("cmp"; "io"; "maps"; "slices"; "time"; "github.com/interlockdev/interlock")
type state struct { keys map[interlock.Key]int; n int }
var names = [...]string{1: "one"}
func (s *state) walk(w io.Writer) (list []interlock.Key) {
	for _, k := range slices.Sorted(maps.Keys(s.keys)) {
		if s.keys[k] > 7*int(time.Second/time.Millisecond) { list = append(list, k) }
	}
	n := 0
	n++
	s.n = n
	local := map[int]int{}
	local[1] = 2
	_ = slices.SortedFunc(maps.Keys(s.keys), cmp.Compare)
	for i := range 10 { _ = i }
	maps.DeleteFunc(local, func(k, _ int) bool { return k == n })
	all := slices.Collect(maps.Values(s.keys))
	slices.Sort(all)
	return list
}

// sum adds them up, which does not depend on the order of the map, because
// addition commutes.
func sum(m map[string]int) (n int) {
	for _, v := range m { n += v }
	return n
}`})
	report(t, problems, err)
}

// TestPurityCoversRooms plants a goroutine in a package below the engine.
func TestPurityCoversRooms(t *testing.T) {
	got, err := Engine(plant(t, map[string]string{
		"engine/a.go":                    "package engine",
		"engine/internal/part/b.go":      "package part; func f() { go f() }",
		"engine/internal/part/b_test.go": "package part; func g() { go g() }",
		"server/c.go":                    "package server; func f() { go f() }",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"engine/internal/part/b.go:1: starts a goroutine"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatelessRefuses(t *testing.T) {
	sources := map[string]string{
		"engine/event.go": "package engine\ntype Event struct {\n\tat Time\n\treq *request\n}\nfunc (ev *Event) f(x " +
			"interface{ n() }) { x.n(); ev.req.free() }",
		"engine/time.go":  "package engine\ntype Time int",
		"engine/state.go": "package engine\ntype request struct{ ev Event }\nfunc (r *request) free() {}",
	}
	got, err := checkStateless(root, sources, []string{"engine/event.go", "engine/time.go", "engine/ended.go"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"engine/ended.go: is in the list of internal/layout/stateless.go and does not exist",
		"engine/event.go:4: refers to request of engine/state.go, which is not stateless",
		"engine/event.go:6: refers to free of engine/state.go, which is not stateless",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestImportsRefuses(t *testing.T) {
	table := []rule{
		{folder: "."},
		{folder: "engine", local: []string{"."}},
		{folder: "server", local: []string{"engine"}, remote: []string{"example.org/a"}},
		{folder: "server/wirepb", tests: true},
		{folder: "engine", local: []string{"."}},
	}
	root := plant(t, map[string]string{
		"words.go": "package interlock\nimport _ \"github.com/interlockdev/interlock/engine\"",
		"engine/a.go": "package engine\nimport (\n_ \"github.com/interlockdev/interlock\"\n_ " +
			"\"github.com/interlockdev/interlock/engine/part\"\n_ \"github.com/interlockdev/interlock/server\"\n)",
		"engine/a_test.go":     "package engine\nimport _ \"github.com/interlockdev/interlock/server\"",
		"engine/part/b.go":     "package part\nimport _ \"example.org/a\"",
		"server/c.go":          "package server\nimport (\n_ \"example.org/a/b\"\n_ \"example.org/ab\"\n_ \"fmt\"\n)",
		"server/d.go":          "package server\nimport _ \"github.com/interlockdev/interlock/server/wirepb\"",
		"server/d_test.go":     "package server\nimport _ \"github.com/interlockdev/interlock/server/wirepb\"",
		"server/wirepb/w.go":   "package wirepb",
		"server/testdata/x.go": "package x\nimport _ \"example.org/nowhere\"",
		"new/d.go":             "package new",
	})
	got, err := checkImports(root, table)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"engine has two rules in internal/layout/table.go: merge them",
		". must not import github.com/interlockdev/interlock/engine",
		"engine must not import github.com/interlockdev/interlock/server",
		"engine/part must not import example.org/a",
		"new: no rule says what it may import: add it to internal/layout/table.go",
		"server must not import example.org/ab",
		"server must not import github.com/interlockdev/interlock/server/wirepb outside its tests",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTreeRefuses(t *testing.T) {
	root := plant(t, map[string]string{
		"Makefile":  "SUITES := unit race\ntest: ## Everything.\n\techo\n",
		"README.md": "See [the docs](docs/a.md), [the web](https://example.org) and [a part](docs/a.md#part).\n\n```\nmake test\nmake nothing\n```\nWe make it.\n",
		"docs/a.md": "[gone](b.md) and `make neither`, `make race`, shown by `TestThere`, `TestGone`,\n" +
			"`line/there`, `line/gone` and `cmd/interlock`\n",
		"engine/testdata/line/there.txt": "",
		"a/a.go":                         "package a\n// " + "TO" + "DO: more\n",
		"b/doc.go":                       "// Package b is documented.\npackage b\n",
		"b/b_test.go": "package b\nimport \"time\"\nfunc f() { time." +
			"Sleep(1) }\nfunc g() { synctest.Test(nil, func() { time." + "Sleep(1) }) }\n",
		"c/c.pb.go": "// Code generated by a tool. DO NOT EDIT.\npackage c\n" +
			strings.Repeat("\n", MaxLines),
		"d/doc.go":                      "package d\n",
		"d/d.go":                        "package d\n" + strings.Repeat("\n", MaxLines),
		"f/f_test.go":                   "package f\nfunc f() {\nif testing.Short() { t.Skip() }\nt.Skipf(\"\")\n}\n",
		"docs/long.md":                  strings.Repeat("\n", MaxLines+1),
		"scripts/long.sh":               strings.Repeat("\n", MaxLines+1),
		"internal/test/tools/t_test.go": "package tools\nfunc f() { t.SkipNow() }\n",
		"e/only_test.go":                "package e\n\nfunc TestThere() {}\n",
	})
	got, err := Tree(root)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	const undocumented = "has no doc.go that says what the package does, what it must never do and where to start reading"
	want := []string{
		"README.md: says make nothing, which the Makefile does not have",
		"a/a.go:2: says " + "TO" + "DO: finish it or open an issue",
		"a: " + undocumented,
		"b/b_test.go:3: sleeps: wait for the event, or use testing/synctest",
		"d/d.go: has 801 lines, more than 800: split it by topic",
		"d: " + undocumented,
		"docs/a.md: links to b.md, which does not exist",
		"docs/a.md: names TestGone, which does not exist",
		"docs/a.md: names the script engine/testdata/line/gone.txt, which does not exist",
		"docs/a.md: says make neither, which the Makefile does not have",
		"f/f_test.go:4: skips a test: call tools.Need of internal/test/tools, which says when",
		"scripts/long.sh: has 801 lines, more than 800: split it by topic",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The architecture page shows a script of the engine. It must be the beginning of the real one.
func TestPageShowsARealScript(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "`engine/testdata/expiry/passes_on.txt`:\n\n```\n")
	if !ok {
		t.Fatal("the page shows no script")
	}
	shown, _, _ := strings.Cut(rest, "```")
	script, err := os.ReadFile(filepath.Join(root, "engine/testdata/expiry/passes_on.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(script), shown) {
		t.Errorf("the page shows\n%s\nthe script is\n%s", shown, script)
	}
}

// plant writes files into a new directory.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
