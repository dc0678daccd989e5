package settings

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/home"
)

// maxFile bounds the size of a file that is read.
const maxFile = 8 << 20

// File is a file with the content that it has and the one that it is to get. nil is no file.
type File struct {
	Path string // as a person reads it
	Old  []byte
	New  []byte

	real string // where links lead
	top  string // the folder that the file stays below, and the last that is left when it goes
	mode fs.FileMode
}

// Open reads a file below a folder, which is a project or the home of a user. A link below a project
// may not lead out of it: the files of a project come from others.
func Open(path, top string, project bool) (*File, error) {
	f := &File{Path: path, real: path, top: top, mode: 0o644}
	dir, err := existing(filepath.Dir(path))
	if err != nil {
		return nil, refuse(err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		f.real = real
	} else if _, err := os.Lstat(path); err == nil {
		return nil, cli.Usagef("%s is a link to nothing: remove it first", cli.Clean(path))
	}
	if project {
		realTop, err := filepath.EvalSymlinks(top)
		if err != nil {
			return nil, refuse(err)
		}
		for _, at := range []string{dir, f.real} {
			if at != path && !below(at, realTop) {
				return nil, cli.Usagef(
					"%s leads out of the project, to %s: change that file yourself",
					cli.Clean(path),
					cli.Clean(at),
				)
			}
		}
	}
	info, err := os.Stat(f.real)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	switch {
	case err != nil:
		return nil, refuse(err)
	case !info.Mode().IsRegular():
		return nil, cli.Usagef("%s is no file", cli.Clean(path))
	case info.Size() > maxFile:
		return nil, cli.Usagef("%s has %s, of at most %s", cli.Clean(path), cli.Bytes(info.Size()), cli.Bytes(maxFile))
	}
	f.mode = info.Mode().Perm()
	if f.Old, err = os.ReadFile(f.real); err != nil {
		return nil, refuse(err)
	}
	f.New = f.Old
	return f, nil
}

// existing returns where the nearest folder that exists leads.
func existing(dir string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return real, nil
		}
		above := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || above == dir {
			return "", err
		}
		if _, err := os.Lstat(dir); err == nil {
			return "", fmt.Errorf("%s is a link to nothing", dir)
		}
		dir = above
	}
}

func below(path, top string) bool {
	rest, err := filepath.Rel(top, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

func refuse(err error) error { return cli.ExitWith(cli.ExitUsage, err) }

// Changed reports whether the file is to get another content.
func (f *File) Changed() bool { return (f.Old == nil) != (f.New == nil) || !bytes.Equal(f.Old, f.New) }

// Diff is the change as a person reads it.
func (f *File) Diff() string {
	before, after := f.Path, f.Path
	if f.Old == nil {
		before = os.DevNull
	}
	if f.New == nil {
		after = os.DevNull
	}
	return cli.CleanLines(udiff.Unified(before, after, string(f.Old), string(f.New)))
}

// Original returns the content from before the first change, if it is known; nil was no file.
func (f *File) Original() ([]byte, bool) {
	name, err := f.backup()
	if err != nil {
		return nil, false
	}
	content, err := os.ReadFile(name)
	return content, err == nil
}

// First is the document from before the first change, nil if it is not known.
func (f *File) First() *Document {
	content, known := f.Original()
	if !known {
		return nil
	}
	d, err := Parse(f.Path, content)
	if err != nil {
		return nil
	}
	return d
}

// Settle plans the content of a document that our entries were removed from: the first one, if
// nothing else has changed since, or no file, if there was none.
func (f *File) Settle(d *Document) {
	first := f.First()
	switch {
	case first != nil && d.Same(first):
		f.New, _ = f.Original()
	case first == nil && d.Bare():
		f.New = nil
	default:
		f.New = d.Bytes()
	}
}

// Clear removes an object or a list that is left without content, unless it was there at first.
func (d *Document) Clear(first *Document, path ...string) error {
	if !d.Bare(path...) || first != nil && first.Has(path...) {
		return nil
	}
	return d.Remove(path...)
}

// Undone reports whether the planned content is the first one.
func (f *File) Undone() bool {
	first, known := f.Original()
	return f.New == nil || known && bytes.Equal(f.New, first)
}

// backup is where the content from before the first change is kept.
func (f *File) backup() (string, error) {
	dir, err := home.Backups()
	if err != nil {
		return "", refuse(err)
	}
	path, err := filepath.Abs(f.real)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(dir, filepath.Base(f.real)+"."+hex.EncodeToString(sum[:8])), nil
}

// Keep notes the present content as the one to go back to.
func (f *File) Keep() error {
	name, err := f.backup()
	if err != nil || f.Old == nil {
		return err
	}
	return write(name, f.Old, 0o600, 0o700)
}

// Forget removes that note.
func (f *File) Forget() error {
	name, err := f.backup()
	if err != nil {
		return nil // there was no place for one
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write carries the change out.
func (f *File) Write() error {
	if f.New != nil {
		return write(f.real, f.New, f.mode, 0o755)
	}
	if err := os.Remove(f.real); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(f.real); dir != f.top && below(dir, f.top); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // it has other files
		}
	}
	return nil
}

func write(path string, content []byte, mode, dirMode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	return cli.ReplaceFile(path, func(next *os.File) error {
		if _, err := next.Write(content); err != nil {
			return err
		}
		return next.Chmod(mode)
	})
}
