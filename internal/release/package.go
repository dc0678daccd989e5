package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
)

// nfpm builds the Debian package and the RPM. It runs at this version by "go run", so that none of its modules are in
// go.mod.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// packages builds the packages of a Linux binary from packaging/nfpm.yaml.
func (r *release) packages(b *binary, completions map[string][]byte, work string) error {
	files := filepath.Join(work, "package_"+b.arch)
	if err := os.MkdirAll(files, 0o755); err != nil {
		return err
	}
	put := func(name string, body []byte) error {
		return os.WriteFile(filepath.Join(files, name), body, 0o644)
	}
	for shell, script := range completions {
		if err := put("interlock."+shell, script); err != nil {
			return err
		}
	}
	if err := put("THIRD_PARTY_LICENSES", b.licences); err != nil {
		return err
	}
	config, err := r.fill("packaging/nfpm.yaml", map[string]string{
		"Version": r.number(), "Arch": b.arch, "Binary": b.path, "Hook": b.hook, "Files": files,
		"Time": r.time.Format("2006-01-02T15:04:05Z"),
	})
	if err != nil {
		return err
	}
	if err := put("nfpm.yaml", config); err != nil {
		return err
	}
	// Without SOURCE_DATE_EPOCH the time of the build would be in the packages.
	env := []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10)}
	for _, format := range []string{"deb", "rpm"} {
		name := fmt.Sprintf("interlock_%s_%s.%s", r.number(), b.arch, format)
		err := do(
			r.root, env, "go", "run", nfpm, "package", "--config", filepath.Join(files, "nfpm.yaml"), "--packager", format,
			"--target", filepath.Join(r.out, name),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// formula writes the Homebrew formula of the archives that were built.
func (r *release) formula() error {
	values := map[string]string{
		"Version": r.number(), "Download": "https://" + module + "/releases/download/" + r.version,
	}
	for _, t := range targets {
		name := "interlock_" + r.number() + "_" + t.os + "_" + t.arch + ".tar.gz"
		switch sum, err := sha256Of(filepath.Join(r.out, name)); {
		case err == nil:
			values[t.os+"_"+t.arch] = sum
		case !os.IsNotExist(err):
			return err
		}
	}
	text, err := r.fill("packaging/interlock.rb", values)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "interlock.rb"), text, 0o644)
}

// fill fills a template of the checkout.
func (r *release) fill(name string, values map[string]string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.root, name))
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Option("missingkey=zero").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, values)
	return out.Bytes(), err
}
