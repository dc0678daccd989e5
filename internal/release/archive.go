package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// member is a file in an archive.
type member struct {
	name string
	mode int64
	body []byte
}

// stem is the beginning of the names of a binary's files.
func (r *release) stem(b *binary) string {
	return "interlock_" + r.number() + "_" + b.os + "_" + b.arch
}

// archive packs the binaries with what a person unpacks beside it.
func (r *release) archive(b *binary, completions map[string][]byte) error {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	hook, err := os.ReadFile(b.hook)
	if err != nil {
		return err
	}
	members := []member{{b.name(), 0o755, program}, {b.hookName(), 0o755, hook}, {"THIRD_PARTY_LICENSES", 0o644, b.licences}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		body, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		members = append(members, member{name, 0o644, body})
	}
	for shell, script := range completions {
		members = append(members, member{"completions/interlock." + shell, 0o644, script})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	name, write := r.stem(b)+".tar.gz", writeTar
	if b.os == "windows" {
		name, write = r.stem(b)+".zip", writeZip
	}
	file, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := write(file, r.stem(b), members, r.time); err != nil {
		return err
	}
	return file.Close()
}

// writeTar writes members below a folder, with nothing in it that depends on the machine.
func writeTar(w io.Writer, folder string, members []member, at time.Time) error {
	packed := gzip.NewWriter(w)
	t := tar.NewWriter(packed)
	for _, m := range members {
		err := t.WriteHeader(&tar.Header{
			Name: folder + "/" + m.name, Mode: m.mode, Size: int64(len(m.body)), ModTime: at, Format: tar.FormatPAX,
		})
		if err != nil {
			return err
		}
		if _, err := t.Write(m.body); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return packed.Close()
}

func writeZip(w io.Writer, folder string, members []member, at time.Time) error {
	z := zip.NewWriter(w)
	for _, m := range members {
		f, err := z.CreateHeader(&zip.FileHeader{Name: folder + "/" + m.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return err
		}
		if _, err := f.Write(m.body); err != nil {
			return err
		}
	}
	return z.Close()
}

// sums writes the checksums of all files of the release, for "sha256sum -c".
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		sum, err := sha256Of(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

func sha256Of(name string) (string, error) {
	body, err := os.ReadFile(name)
	return fmt.Sprintf("%x", sha256.Sum256(body)), err
}
