package merge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Git reads attributes from files of a work tree, and has no other way to take those of a tree before version 2.43.
// So the boundary's work tree is a folder that has the .gitattributes files of the parent's tree, and no other. There
// is one for each set of such files, and it never changes.

const attributesName = ".gitattributes"

// attributeCache remembers the folder of each tree, so that a tree is listed only when its attributes may differ from
// those of its parent.
type attributeCache map[string]string

// maxTrees bounds the cache. It begins anew when it is full.
const maxTrees = 4096

func (b *Boundary) remember(tree, folder string) {
	if b.attributes == nil || len(b.attributes) >= maxTrees {
		b.attributes = attributeCache{}
	}
	b.attributes[tree] = folder
}

// attributesOf returns the folder with the attributes of a tree.
func (b *Boundary) attributesOf(ctx context.Context, tree string) (folder string, err error) {
	if folder, ok := b.attributes[tree]; ok {
		return folder, nil
	}
	files, err := b.attributeFiles(ctx, tree)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%s\x00%s\x00", f.object, f.path)
	}
	folder = b.folder.Path("attributes", hex.EncodeToString(sum.Sum(nil)))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		err = b.writeAttributes(ctx, folder, files)
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(folder))
		}
	}
	b.remember(tree, folder)
	return folder, nil
}

// inherit notes that a tree has the attributes of its parent, unless it changes any.
func (b *Boundary) inherit(tree, folder string, changes map[string]change) {
	for name := range changes {
		if path.Base(name) == attributesName {
			return
		}
	}
	b.remember(tree, folder)
}

type attributeFile struct{ path, object string }

// attributeFiles lists the files of attributes in a tree. A link is none, as it is for git.
func (b *Boundary) attributeFiles(ctx context.Context, tree string) (files []attributeFile, err error) {
	out, err := b.git.Run(ctx, git.Call{Args: []string{"ls-tree", "-r", "-z", "--full-tree", tree}})
	if err != nil {
		return nil, err
	}
	for entry := range bytes.SplitSeq(out.Out, []byte{0}) {
		if !bytes.HasSuffix(entry, []byte(attributesName)) {
			continue
		}
		facts, name, _ := strings.Cut(string(entry), "\t")
		f := strings.Fields(facts)
		if path.Base(name) != attributesName || len(f) != 3 || !strings.HasPrefix(f[0], "100") || unsafePath(name) {
			continue
		}
		files = append(files, attributeFile{name, f[2]})
	}
	return files, nil
}

func (b *Boundary) writeAttributes(ctx context.Context, folder string, files []attributeFile) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for _, f := range files {
		content, err := b.object(ctx, "blob", f.object)
		if err != nil {
			return err
		}
		name := filepath.Join(folder, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		// Two paths that are one file on this file system would merge by the attributes of one of them.
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("attributes of %q, on a file system that may ignore case: %w", f.path, err)
		}
		_, err = file.Write(content)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
