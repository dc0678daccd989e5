package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// Limits.
const (
	MaxBytes      = 8 << 20   // of a file
	MaxPathBytes  = 1024      // of a path
	MaxKeptBytes  = 256 << 20 // of the earlier contents kept below a root; the oldest go first
	MaxKept       = 10_000    // of those contents, and of the files with a remembered author
	MinShortBytes = 12        // digits of a version that are enough to name it
)

// writeTime bounds one write, with all that it waits for.
const writeTime = 20 * time.Second

// maxTries is how often a change is tried: each time but the first because the file
// moved between the merge and the write.
const maxTries = 8

// Version names a content: its SHA-256 in hexadecimal digits. Where a version is
// asked for, its beginning is enough if it names one content only.
type Version string

// None is the version of a file that is not there.
const None Version = "none"

// Short is the beginning of a version, for people.
func (v Version) Short() string { return string(v[:min(len(v), MinShortBytes)]) }

func versionOf(body []byte) Version {
	sum := sha256.Sum256(body)
	return Version(hex.EncodeToString(sum[:]))
}

// Dir is a shared directory. Its methods may be called by several goroutines, and
// other processes may have a Dir of the same directory.
type Dir struct {
	root *os.Root
	keep keeper
	turn chan struct{} // has room for one: the writer among the goroutines of this process

	mu   sync.Mutex // guards meta
	meta *os.Root   // .interlock; nil until it is needed

	// beforeRename is called by tests between the new content and its name.
	beforeRename func() error
}

// Open opens a directory that is there.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, keep: keeper{bytes: MaxKeptBytes, count: MaxKept}, turn: make(chan struct{}, 1)}, nil
}

// Close releases the directory.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.meta != nil {
		return errors.Join(d.meta.Close(), d.root.Close())
	}
	return d.root.Close()
}

// File is a file as it was read.
type File struct {
	Path    string
	Version Version // None for one that is not there
	Body    []byte

	// The author that wrote it through here: empty for writes from outside.
	Agent     string
	Principal string
	Note      string
	Age       time.Duration

	info fs.FileInfo
}

// Read returns a file. Its content is kept for a while, so that a change that is made from it
// can be merged. The error is an *interlock.Error with CodeInvalidPath, CodeUnknownFile or
// CodeBodyTooLarge, or one of the operating system.
func (d *Dir) Read(path string) (*File, error) {
	f, err := d.read(path)
	if err != nil {
		return nil, err
	}
	if f.Version == None {
		return nil, refuse(interlock.CodeUnknownFile, "file %q does not exist: to create it, write it with base none", path)
	}
	// A process that may not write below the root can still read; such a reader's changes come
	// from somewhere else.
	if meta, err := d.open(); err == nil {
		_ = d.keep.put(meta, f)
		d.keep.trim(meta)
		d.credit(meta, f, f.Version)
	}
	return f, nil
}

// Change is a change to one file.
type Change struct {
	Path   string
	Base   Version // that of the content that the change was made from, or None
	Body   []byte  // the whole new content
	Delete bool    // remove the file

	// The author and its reason: reported to authors of changes that conflict with this one.
	Agent     string
	Principal string
	Note      string
}

// Result is the result of a change that was written.
type Result struct {
	Version Version // of the file's present content; None after a deletion
	Size    int
	// Merged reports that others had changed the file meanwhile, and that it has both changes
	// now: Body differs from the written content.
	Merged bool
	Body   []byte
}

// Write carries out a change. When the file is not at the change's base and the two
// changes cannot be merged, the error is a *StaleError; other refusals are an
// *interlock.Error with CodeInvalidPath, CodeVersionRequired, CodeInvalidRequest,
// CodeUnknownFile, CodeTooLong, CodeBodyTooLarge or CodeOverloaded. After an error of the operating
// system the file has its old content or its new one, and repeating the change tells:
// a change that is there already is a success.
func (d *Dir) Write(ctx context.Context, c Change) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	meta, err := d.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, writeTime, refuse(interlock.CodeOverloaded,
		"%q could not be written within %v: try again, and find the process that holds the lock %s/%s", c.Path, writeTime,
		metaName, lockName))
	defer cancel()
	next := edit{Change: c, onto: c.Base}
	for try := 1; ; try++ {
		now, err := d.attempt(ctx, meta, &next)
		if err != nil {
			return nil, err
		}
		if now == nil {
			return &Result{Version: next.version(), Size: len(next.Body), Merged: next.merged, Body: next.Body}, nil
		}
		from, err := d.resolve(meta, c.Base, now)
		if err != nil {
			return nil, err
		}
		body, ok := c.Body, from.version == now.Version // which was named short
		merged := !ok
		if merged {
			body, ok = from.merge(ctx, &c, now)
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !ok, try == maxTries:
			return nil, d.stale(meta, &c, from, now)
		}
		next = edit{Change: c, onto: now.Version, merged: merged}
		next.Body = body
	}
}

// edit is a change on its way into a file.
type edit struct {
	Change
	onto   Version // the version that the file must have
	merged bool
}

func (e *edit) version() Version {
	if e.Delete {
		return None
	}
	return versionOf(e.Body)
}

// attempt writes an edit if the file is as the edit wants it. If it is not, it returns the file
// as it is.
func (d *Dir) attempt(ctx context.Context, meta *os.Root, e *edit) (now *File, err error) {
	unlock, err := d.lock(ctx, meta)
	if err != nil {
		return nil, err
	}
	defer unlock()
	now, err = d.read(e.Path)
	if err != nil {
		return nil, err
	}
	version := e.version()
	switch {
	case now.Version == None && e.Delete && e.Base == None:
		return nil, refuse(interlock.CodeUnknownFile, "file %q does not exist", e.Path)
	case now.Version == version:
		return nil, nil // a repetition, or another writer had the same thought
	case now.Version != e.onto:
		return now, nil
	}
	if now.Version != None {
		if err := d.keep.put(meta, now); err != nil {
			return nil, err
		}
	}
	if err := d.replace(e, now); errors.Is(err, errMoved) {
		return d.read(e.Path)
	} else if err != nil {
		return nil, err
	}
	// The rest only helps others: the change is made.
	if !e.Delete {
		_ = d.keep.put(meta, &File{Version: version, Body: e.Body, info: now.info})
	}
	d.sign(meta, &e.Change, now.Version, version)
	d.keep.trim(meta)
	return nil, nil
}

// read returns a file as it is, also one that is not there.
func (d *Dir) read(path string) (*File, error) {
	if err := d.checkPath(path); err != nil {
		return nil, err
	}
	none := &File{Path: path, Version: None}
	f, err := d.root.OpenFile(path, os.O_RDONLY|openWithoutWaiting, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refuse(interlock.CodeInvalidPath, "%q is not a regular file", path)
	}
	body, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > MaxBytes {
		return nil, tooLarge(path)
	}
	return &File{Path: path, Version: versionOf(body), Body: body, info: info}, nil
}

// check refuses a change that is invalid for any file.
func (c *Change) check() error {
	if err := checkPath(c.Path); err != nil {
		return err
	}
	switch {
	case len(c.Body) > MaxBytes:
		return tooLarge(c.Path)
	case c.Base == "":
		return refuse(
			interlock.CodeVersionRequired,
			"the base version of %q is missing: read the file first, and name its version; use none for a new file", c.Path,
		)
	case c.Base != None && !isVersion(c.Base):
		return refuse(
			interlock.CodeInvalidRequest,
			"%q is not a version: want none, or at least %d digits of the version that was read", c.Base, MinShortBytes,
		)
	case c.Delete && len(c.Body) > 0:
		return refuse(interlock.CodeInvalidRequest, "a deletion has no content")
	}
	for _, text := range []struct {
		name, value string
		limit       int
	}{
		{"agent", c.Agent, interlock.MaxNameBytes},
		{"principal", c.Principal, interlock.MaxNameBytes},
		{"note", c.Note, interlock.MaxNoteBytes},
	} {
		if len(text.value) > text.limit {
			return refuse(interlock.CodeTooLong, "the %s has %d bytes, more than %d", text.name, len(text.value), text.limit)
		}
		if !utf8.ValidString(text.value) {
			return refuse(interlock.CodeInvalidRequest, "the %s is not UTF-8", text.name)
		}
	}
	return nil
}

func isVersion(v Version) bool {
	if len(v) < MinShortBytes || len(v) > sha256.Size*2 {
		return false
	}
	return len(bytes.Trim([]byte(v), "0123456789abcdef")) == 0
}

func tooLarge(path string) error {
	return refuse(interlock.CodeBodyTooLarge, "%q has more than %d MiB", path, MaxBytes>>20)
}

func refuse(code interlock.Code, format string, args ...any) error {
	return &interlock.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
