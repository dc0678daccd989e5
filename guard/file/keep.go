package file

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
)

// keeper keeps contents by their versions, and forgets the oldest. Nothing of it is
// needed to be right: what is lost here makes a write stale that could have been
// merged.
type keeper struct {
	bytes int64 // of contents, at most
	count int   // of contents, at most

	// fresh is how much was put since the last trim. The first content that a process
	// puts has it trim, too, since it does not know what others have put.
	fresh   atomic.Int64
	trimmed atomic.Bool
}

// put keeps a file's content, or makes one that is kept the newest. A process that may not read
// the file may not read it here either.
func (k *keeper) put(meta *os.Root, f *File) error {
	name := path.Join(baseName, string(f.Version))
	now := time.Now()
	if info, err := meta.Lstat(name); err == nil && info.Size() == int64(len(f.Body)) {
		return meta.Chtimes(name, now, now)
	}
	mode := fs.FileMode(0o666)
	if f.info != nil {
		mode = f.info.Mode().Perm()&0o666 | 0o600
	}
	// The name comes with the whole content, because a reader takes no lock. After a
	// crash of the machine it may have less: get looks at the hash.
	temp := path.Join(baseName, "tmp-"+rand.Text())
	err := meta.WriteFile(temp, f.Body, mode)
	if err == nil {
		err = meta.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, meta.Remove(temp))
	}
	k.fresh.Add(int64(len(f.Body)) + 1)
	return nil
}

// get returns a content that is kept.
func (k *keeper) get(meta *os.Root, v Version) (body []byte, ok bool) {
	body, err := meta.ReadFile(path.Join(baseName, string(v)))
	return body, err == nil && versionOf(body) == v
}

// find lists the versions that are kept and begin so.
func (k *keeper) find(meta *os.Root, short Version) (list []Version, err error) {
	names, err := fs.ReadDir(meta.FS(), baseName)
	for _, name := range names {
		if strings.HasPrefix(name.Name(), string(short)) {
			list = append(list, Version(name.Name()))
		}
	}
	return list, err
}

// trim forgets the oldest remembered versions when there may be too many. Two concurrent calls
// do each other no harm.
func (k *keeper) trim(meta *os.Root) {
	if fresh := k.fresh.Load(); fresh == 0 || fresh < k.bytes/16 && k.trimmed.Load() {
		return
	}
	k.trimmed.Store(true)
	k.fresh.Store(0)
	for _, dir := range []string{baseName, lastName} {
		entries, err := fs.ReadDir(meta.FS(), dir)
		if err != nil {
			continue
		}
		var infos []fs.FileInfo
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				infos = append(infos, info)
			}
		}
		slices.SortFunc(infos, func(a, b fs.FileInfo) int {
			return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
		})
		var total int64
		for i, info := range infos {
			if total += info.Size(); total > k.bytes || i >= k.count {
				_ = meta.Remove(path.Join(dir, info.Name()))
			}
		}
	}
}

// base is the content that a change was made from.
type base struct {
	version Version
	body    []byte
	known   bool // body is it
}

// resolve finds what a change was made from: the file as it is now, or a content
// that is kept, or one that is not.
func (d *Dir) resolve(meta *os.Root, v Version, now *File) (base, error) {
	switch {
	case v == None:
		return base{version: None, known: true}, nil
	case v == now.Version:
		return base{version: v, body: now.Body, known: true}, nil
	}
	if len(v) < len(now.Version) || now.Version == None {
		found, err := d.keep.find(meta, v)
		if err != nil {
			return base{}, err
		}
		if strings.HasPrefix(string(now.Version), string(v)) && !slices.Contains(found, now.Version) {
			found = append(found, now.Version)
		}
		switch len(found) {
		case 0:
			return base{version: v}, nil
		case 1:
			v = found[0]
		default:
			return base{}, refuse(interlock.CodeInvalidRequest, "%d versions begin with %s: name more digits", len(found), v)
		}
	}
	if v == now.Version {
		return base{version: v, body: now.Body, known: true}, nil
	}
	body, ok := d.keep.get(meta, v)
	return base{version: v, body: body, known: ok}, nil
}
