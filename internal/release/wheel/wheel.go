package wheel

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Source is the folder of the client below the root of the repository, and Python the interpreter with hatchling.
const (
	Source = "clients/python"
	Python = "dist/python/venv/bin/python"
)

// Names are the names of the two files.
func Names(version string) []string {
	stem := "interlock_client-" + Version(version)
	return []string{stem + "-py3-none-any.whl", stem + ".tar.gz"}
}

var candidate = regexp.MustCompile(`^([0-9.]+)-(alpha|beta|rc)\.?([0-9]+)$`)

// Version spells a semantic version as PEP 440 does: 1.0.0-rc.1 is 1.0.0rc1, and what follows another hyphen is local.
func Version(semantic string) string {
	if m := candidate.FindStringSubmatch(semantic); m != nil {
		return m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]] + m[3]
	}
	release, local, _ := strings.Cut(semantic, "-")
	if local == "" {
		return release
	}
	return release + "+" + strings.ReplaceAll(local, "-", ".")
}

// number is the line of the source with the version.
var number = regexp.MustCompile(`(?m)^__version__ = ".*"$`)

// Build writes both files of the client in the repository at root into the folder out.
func Build(root, out, version string, at time.Time) error {
	work, err := os.MkdirTemp("", "interlock-wheel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := copySources(root, work, version); err != nil {
		return err
	}
	python, err := filepath.Abs(filepath.Join(root, Python))
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(python); err != nil {
		return fmt.Errorf("there is no hatchling: run scripts/python-tools.sh (%w)", err)
	}
	folder, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	cmd := exec.Command(python, "-m", "hatchling", "build", "-d", folder)
	cmd.Dir = work
	cmd.Env = append(
		os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(max(at.Unix(), 315532800), 10),
		"PYTHONDONTWRITEBYTECODE=1", // other clones share this Python
	)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return nil
}

// copySources copies what belongs to the client, the licence, and the version in its place.
func copySources(root, to, version string) error {
	files := []string{"README.md", "pyproject.toml"}
	source := os.DirFS(filepath.Join(root, Source))
	for _, folder := range []string{"src", "tests"} {
		err := fs.WalkDir(source, folder, func(name string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(name, ".py") || strings.HasSuffix(name, "/py.typed") {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(files)
	for _, name := range files {
		text, err := fs.ReadFile(source, name)
		if err == nil && name == "src/interlock/__init__.py" {
			text = number.ReplaceAll(text, []byte(`__version__ = "`+Version(version)+`"`))
		}
		if err == nil {
			err = write(filepath.Join(to, filepath.FromSlash(name)), text)
		}
		if err != nil {
			return err
		}
	}
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	return write(filepath.Join(to, "LICENSE"), licence)
}

func write(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
