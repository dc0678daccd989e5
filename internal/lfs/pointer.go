package lfs

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Driver is the usual name of the filter of Git LFS in attributes.
const Driver = "lfs"

// Pointer is what a commit has in place of a large file.
type Pointer struct {
	Path string // one of those that have it
	OID  string // SHA-256 of the content
	Size int64
}

// maxPointer is how many bytes a pointer has at most, by the specification of Git LFS.
const maxPointer = 1024

// Parse reads a pointer. ok is false for any other content.
func Parse(content []byte) (p Pointer, ok bool) {
	if len(content) > maxPointer || !bytes.HasPrefix(content, []byte("version https://")) {
		return p, false
	}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "oid":
			p.OID, _ = strings.CutPrefix(value, "sha256:")
		case "size":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return p, false
			}
			p.Size = n
		}
	}
	return p, len(p.OID) == 64 && git.CheckObject(p.OID) == nil
}

// Store is the folder of objects of a git directory. storage is its setting lfs.storage, or "".
func Store(gitDir, storage string) string {
	switch {
	case storage == "":
		return filepath.Join(gitDir, "lfs", "objects")
	case filepath.IsAbs(storage):
		return filepath.Join(storage, "objects")
	default:
		return filepath.Join(gitDir, storage, "objects")
	}
}

// In is where a store has an object.
func In(store, oid string) string { return filepath.Join(store, oid[:2], oid[2:4], oid) }

// Blobs are what a range of commits brings: pointers, and paths of blobs that are none. An empty file is its own
// pointer, and neither.
type Blobs struct {
	Pointers []Pointer
	Others   []string
}

// Read reads the blobs that revisions reach, such as HEAD and ^BASE, at paths that a function selects.
func Read(ctx context.Context, r *git.Repository, selects func(path string) bool, revs ...string) (*Blobs, error) {
	out, err := r.Feed(ctx, []byte(strings.Join(revs, "\n")+"\n"), "rev-list", "--objects", "--stdin")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	var ids strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		if id, path, named := strings.Cut(line, " "); named && path != "" && selects(path) {
			paths[id] = path
			ids.WriteString(id + "\n")
		}
	}
	b := new(Blobs)
	if len(paths) == 0 {
		return b, nil
	}
	kinds, err := r.Feed(ctx, []byte(ids.String()), "cat-file", "--batch-check")
	if err != nil {
		return nil, err
	}
	var small strings.Builder
	for line := range strings.SplitSeq(kinds, "\n") {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" || f[2] == "0" {
			continue
		}
		if size, err := strconv.Atoi(f[2]); err == nil && size <= maxPointer {
			small.WriteString(f[0] + "\n")
		} else {
			b.Others = append(b.Others, paths[f[0]])
		}
	}
	return b, b.read(ctx, r, small.String(), paths)
}

// read reads the small blobs.
func (b *Blobs) read(ctx context.Context, r *git.Repository, ids string, paths map[string]string) error {
	if ids == "" {
		return nil
	}
	result, err := r.Run(ctx, git.Call{Args: []string{"cat-file", "--batch"}, In: strings.NewReader(ids)})
	if err != nil {
		return err
	}
	// Each answer is "ID blob SIZE", a line break, the content, and a line break.
	for rest := result.Out; len(rest) > 0; {
		head, after, _ := bytes.Cut(rest, []byte("\n"))
		f := strings.Fields(string(head))
		size := -1
		if len(f) == 3 {
			size, _ = strconv.Atoi(f[2])
		}
		if size < 0 || len(after) < size+1 {
			return fmt.Errorf("git cat-file answered %.80q", head)
		}
		p, ok := Parse(after[:size])
		if p.Path = paths[f[0]]; ok {
			b.Pointers = append(b.Pointers, p)
		} else {
			b.Others = append(b.Others, p.Path)
		}
		rest = after[size+1:]
	}
	return nil
}
