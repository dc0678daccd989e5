package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Source is the folder of the client below the root of the repository, and Tools that of its compiler.
const (
	Source = "clients/typescript"
	Tools  = "dist/typescript"
)

// Name is the name of the package's file.
func Name(version string) string { return "interlockdev-client-" + version + ".tgz" }

// Pack returns the package of the client in the repository at root.
func Pack(root, version string, at time.Time) ([]byte, error) {
	work, err := os.MkdirTemp("", "interlock-npm-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := compile(root, work); err != nil {
		return nil, err
	}
	members := map[string][]byte{}
	built := os.DirFS(work)
	err = fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		members["dist/"+name], err = fs.ReadFile(built, name)
		return err
	})
	readme, noReadme := os.ReadFile(filepath.Join(root, Source, "README.md"))
	licence, noLicence := os.ReadFile(filepath.Join(root, "LICENSE"))
	description, noDescription := describe(root, version)
	if err := errors.Join(err, noReadme, noLicence, noDescription); err != nil {
		return nil, err
	}
	members["README.md"], members["LICENSE"], members["package.json"] = readme, licence, description
	return write(members, at)
}

// compile writes the JavaScript and the declarations of the client into a folder.
func compile(root, out string) error {
	compiler := filepath.Join(root, Tools, "node_modules/.bin/tsc")
	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Errorf("there is no compiler for TypeScript: run scripts/typescript-tools.sh (%w)", err)
	}
	cmd := exec.Command(compiler, "-p", filepath.Join(root, Source), "--outDir", out)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return nil
}

// describe returns the package.json of a version: without what only its own build needs.
func describe(root, version string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, Source, "package.json"))
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	delete(members, "devDependencies")
	if members["version"], err = json.Marshal(version); err != nil {
		return nil, err
	}
	return json.MarshalIndent(members, "", "  ")
}

// write packs members as npm does, with nothing in it that depends on the machine.
func write(members map[string][]byte, at time.Time) ([]byte, error) {
	var names []string
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	for _, name := range names {
		body := members[name]
		err := archive.WriteHeader(&tar.Header{
			Name: "package/" + name, Mode: 0o644, Size: int64(len(body)), ModTime: at, Format: tar.FormatPAX,
		})
		if err == nil {
			_, err = archive.Write(body)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
