package scenariotest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// table is the results by library and scenario.
type table struct {
	libraries []*Library

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
	fmt.Fprintf(&lines, "%-16s", "")
	for _, l := range b.libraries {
		fmt.Fprintf(&lines, " %-16s", l.Name)
	}
	for _, name := range names {
		fmt.Fprintf(&lines, "\n%-16s", name)
		for _, l := range b.libraries {
			fmt.Fprintf(&lines, " %-16s", b.cells[l.Name+"/"+name])
		}
	}
	return lines.String()
}

// Run carries out the scenarios of a folder of the repository with every library, each against servers of its own.
func Run(t *testing.T, folder string, serve func(*testing.T) Servers) {
	files, err := filepath.Glob(filepath.Join(tools.Root(), folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	results := table{libraries: Libraries(), cells: map[string]string{}}
	var names []string
	Build(t)
	t.Run("each", func(t *testing.T) {
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			names = append(names, name)
			for _, l := range results.libraries {
				t.Run(l.Name+"/"+name, func(t *testing.T) {
					t.Parallel()
					results.set(l.Name, name, "failed")
					s := newStage(t, serve(t))
					ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
					defer cancel()
					if err := s.play(ctx, l, file); err != nil {
						t.Fatal(err)
					}
					results.set(l.Name, name, "passed")
				})
			}
		}
	})
	slices.Sort(names)
	t.Logf("the scenarios of %s:\n%s", folder, results.text(names))
}
