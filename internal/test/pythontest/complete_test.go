package pythontest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/release/wheel"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// extras are the modules with classes that extend those of a framework. Package frameworktest checks them beside it.
const extras = "interlock.ext."

// TestComplete installs the wheel as a user does, and asks pyright whether each type of the interface is written down:
// what a type checker would have to infer, it may infer differently from another one.
func TestComplete(t *testing.T) {
	tools.Need(t, tools.PythonVenv, "node")
	out, site := t.TempDir(), t.TempDir()
	if err := wheel.Build(tools.Root(), out, "1.2.3", time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(tools.Root(), tools.PythonVenv)
	install := command(t, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
		"--no-deps", "--target", site, filepath.Join(out, wheel.Names("1.2.3")[0]))
	if text, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := command(t, "node", tools.Pyright(), "--verifytypes", "interlock", "--ignoreexternal", "--outputjson")
	cmd.Dir = out
	cmd.Env = append(cmd.Env, "PYTHONPATH="+site, tools.PathOf(python))
	text, _ := cmd.Output() // its exit code counts the extras
	var report struct {
		TypeCompleteness struct {
			ModuleRootDirectory string
			Symbols             []struct {
				Name                         string
				IsTypeKnown, IsTypeAmbiguous bool
				Diagnostics                  []struct{ Message string }
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	complete := 0
	for _, s := range report.TypeCompleteness.Symbols {
		if s.IsTypeKnown && !s.IsTypeAmbiguous {
			complete++
		} else if !strings.HasPrefix(s.Name, extras) {
			t.Errorf("%s: %v", s.Name, s.Diagnostics)
		}
	}
	if root := report.TypeCompleteness.ModuleRootDirectory; complete < 500 || !strings.HasPrefix(root, site) {
		t.Errorf("%d symbols with a known type in %q", complete, root)
	}
}
