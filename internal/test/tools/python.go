package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// PythonVenv is the Python of the venv that scripts/python-tools.sh makes, with mypy and hatchling.
const PythonVenv = "dist/python/venv/bin/python"

// PythonLib returns the folder of pytest and what it needs, for every interpreter.
func PythonLib() string { return filepath.Join(Root(), "dist/python/lib") }

// Pyright returns the script of pyright, for node. With PathOf it finds what an interpreter would import.
func Pyright() string { return filepath.Join(Root(), "dist/python/node_modules/pyright/index.js") }

// PathOf returns PATH, as in an environment, so that it begins with the folder of an interpreter.
func PathOf(python string) string {
	return "PATH=" + filepath.Dir(python) + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// Frameworks is one of the venvs that scripts/framework-tools.sh makes, beside the others.
const Frameworks = "dist/frameworks/adk"

func findFrameworks(name string) error {
	_, err := exec.LookPath(filepath.Join(Root(), name, "bin/python"))
	return err
}

func findPythonVenv(name string) error {
	_, err := exec.LookPath(filepath.Join(Root(), name))
	return err
}

// Python is an interpreter of this machine.
type Python struct{ Version, Path string }

// pythonVersions are those that the client supports.
var pythonVersions = []string{"3.10", "3.11", "3.12", "3.13"}

// Pythons returns an interpreter of each version that the client supports and this machine has: in PATH, or below
// the folder of pyenv. It fails if there is none.
var Pythons = sync.OnceValues(func() (found []Python, err error) {
	pyenv := os.Getenv("PYENV_ROOT")
	if pyenv == "" {
		home, _ := os.UserHomeDir()
		pyenv = filepath.Join(home, ".pyenv")
	}
	for _, version := range pythonVersions {
		installed, _ := filepath.Glob(filepath.Join(pyenv, "versions", version+".*", "bin", "python"))
		for _, path := range append([]string{"python" + version, "python3"}, installed...) {
			out, err := exec.Command(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)").Output()
			got, full, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
			if err == nil && got == version {
				found = append(found, Python{version, full})
				break
			}
		}
	}
	if len(found) == 0 {
		err = fmt.Errorf("no Python of %s is installed: make deps installs python3", strings.Join(pythonVersions, ", "))
	}
	return found, err
})
