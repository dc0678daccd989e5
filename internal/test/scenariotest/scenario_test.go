package scenariotest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) { launchtest.Main(m) }

// library is a client library with its runner.
type library struct {
	name string
	run  func(ctx context.Context, t *testing.T, s *stage, file string) error
	// build, if set, prepares the runner, before the first scenario.
	build func(t *testing.T)
}

// libraries are those that carry out the scenarios.
var libraries = []library{
	{"go", runGo, nil},
	{"python", runPython("scenario.py"), nil},
	{"python asyncio", runPython("scenario_async.py"), nil},
	{"typescript", runTypeScript, buildTypeScript},
}

func runGo(ctx context.Context, _ *testing.T, s *stage, file string) error {
	x, err := readScenario(file)
	if err != nil {
		return err
	}
	return (&runner{scenario: x, addrs: s.addrs(&x, s.stream.addr), control: s.obey}).run(ctx)
}

// addrs are the addresses that a scenario wants for its clients.
func (s *stage) addrs(x *scenario, addr string) []string {
	if x.DeadFirst {
		return []string{s.dead(), addr}
	}
	return []string{addr}
}

// table is the results by library and scenario.
type table struct {
	mu    sync.Mutex
	cells map[string]string
}

func (b *table) set(library, scenario, result string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cells[library+"/"+scenario] = result
}

// text has a line for each scenario and a column for each library.
func (b *table) text(names []string) string {
	var lines strings.Builder
	fmt.Fprintf(&lines, "%-14s", "")
	for _, l := range libraries {
		fmt.Fprintf(&lines, " %-16s", l.name)
	}
	for _, name := range names {
		fmt.Fprintf(&lines, "\n%-14s", name)
		for _, l := range libraries {
			fmt.Fprintf(&lines, " %-16s", b.cells[l.name+"/"+name])
		}
	}
	return lines.String()
}

// TestScenarios carries out every scenario with every library.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../../clients/scenarios/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	results := table{cells: map[string]string{}}
	var names []string
	for _, l := range libraries {
		if l.build != nil {
			l.build(t)
		}
	}
	t.Run("each", func(t *testing.T) {
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			names = append(names, name)
			for _, l := range libraries {
				t.Run(l.name+"/"+name, func(t *testing.T) {
					t.Parallel()
					results.set(l.name, name, "failed")
					s := newStage(t)
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					if err := l.run(ctx, t, s, file); err != nil {
						t.Fatal(err)
					}
					results.set(l.name, name, "passed")
				})
			}
		}
	})
	slices.Sort(names)
	t.Logf("the scenarios of clients/scenarios:\n%s", results.text(names))
}
