package wheel

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/tools"
)

const root = "../../.."

func TestVersion(t *testing.T) {
	for semantic, want := range map[string]string{
		"1.2.3": "1.2.3", "1.0.0-rc.1": "1.0.0rc1", "1.0.0-beta2": "1.0.0b2",
		"0.0.0-20261126080000-0123456789ab": "0.0.0+20261126080000.0123456789ab",
	} {
		if got := Version(semantic); got != want {
			t.Errorf("%s is %s, want %s", semantic, got, want)
		}
	}
}

func build(t *testing.T) (wheel, sdist string) {
	t.Helper()
	tools.Need(t, tools.PythonVenv)
	out := t.TempDir()
	if err := Build(root, out, "1.2.3", time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	names := Names("1.2.3")
	return filepath.Join(out, names[0]), filepath.Join(out, names[1])
}

// The wheel has all of the package, its types and its licence, and nothing else.
func TestContent(t *testing.T) {
	wheel, _ := build(t)
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	texts := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		texts[f.Name] = string(text)
	}
	info := "interlock_client-1.2.3.dist-info/"
	want := []string{
		info + "METADATA", info + "RECORD", info + "WHEEL", info + "entry_points.txt", info + "licenses/LICENSE",
	}
	sources := os.DirFS(filepath.Join(root, Source, "src"))
	err = fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".pyc") {
			want = append(want, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the wheel has %q, want %q", names, want)
	}
	for _, line := range []string{
		"Name: interlock-client", "Version: 1.2.3", "Requires-Python: >=3.10", "License-Expression: Apache-2.0",
	} {
		if !strings.Contains(texts[info+"METADATA"], line+"\n") {
			t.Errorf("METADATA has no %q:\n%s", line, texts[info+"METADATA"])
		}
	}
	for line := range strings.Lines(texts[info+"METADATA"]) {
		if strings.HasPrefix(line, "Requires-Dist") && !strings.Contains(line, "extra ==") {
			t.Errorf("the wheel has a dependency: %s", line)
		}
	}
	if !strings.Contains(texts["interlock/__init__.py"], `__version__ = "1.2.3"`) {
		t.Error("the package has another version")
	}
}

// Two builds have the same bytes.
func TestReproducible(t *testing.T) {
	wheel, sdist := build(t)
	again, sdistAgain := build(t)
	for first, second := range map[string]string{wheel: again, sdist: sdistAgain} {
		a, err := os.ReadFile(first)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(second)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs between two builds", filepath.Base(first))
		}
	}
}

// The wheel works in an empty venv of each supported Python, which needs nothing from elsewhere.
func TestInstall(t *testing.T) {
	wheel, _ := build(t)
	pythons, err := tools.Pythons()
	if err != nil {
		t.Fatal(err)
	}
	for _, python := range pythons {
		t.Run(python.Version, func(t *testing.T) {
			venv := t.TempDir()
			run := func(want, name string, args ...string) {
				t.Helper()
				cmd := exec.Command(name, args...)
				cmd.Dir = venv
				if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), want) {
					t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
				}
			}
			run("", python.Path, "-m", "venv", "--without-pip", venv)
			installed := filepath.Join(venv, "bin/python")
			pip := filepath.Join(tools.Root(), tools.PythonVenv)
			run("", pip, "-m", "pip", "--python", installed, "install", "-q", "--no-index", "--no-cache-dir", wheel)
			run("interlock-client 1.2.3", installed, "-m", "interlock", "http://127.0.0.1:1")
		})
	}
}
