package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/file"
	"github.com/interlockdev/interlock/internal/prose"
)

// maxFileCalls bounds the calls about a namespace's files that are carried out at a
// time: each may have a file in memory three times over, and a merge runs a process.
const maxFileCalls = 16

// fileWait bounds how long a call waits for one of those to end.
const fileWait = 5 * time.Second

// sharedFiles is the shared directory of a namespace.
type sharedFiles struct {
	dir  *file.Dir
	free chan struct{} // one for each call under way
}

func newFiles(dirs map[interlock.Namespace]*file.Dir) map[interlock.Namespace]*sharedFiles {
	files := map[interlock.Namespace]*sharedFiles{}
	for ns, dir := range dirs {
		files[ns] = &sharedFiles{dir, make(chan struct{}, maxFileCalls)}
	}
	return files
}

// enter waits until there is room for one more call.
func (f *sharedFiles) enter(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fileWait, &interlock.Error{
		Code: interlock.CodeOverloaded, Message: "too many file calls are in progress: try again in a moment",
	})
	defer cancel()
	select {
	case f.free <- struct{}{}:
		return func() { <-f.free }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inFiles does something with the directory of the caller's namespace and the file in
// the path, as long as this server owns the shard: its successor serves the files, too.
func (c *call) inFiles(do func(d *file.Dir, path string, at interlock.At)) {
	path, err := url.PathUnescape(c.variable)
	if err != nil {
		c.refuse(interlock.CodeInvalidRequest, "the path is not percent-encoded: write % as %25")
		return
	}
	files := c.s.files[c.namespace]
	if files == nil {
		c.refuse(
			interlock.CodeNotFound, "the namespace has no shared files on this server: start the server with --files",
		)
		return
	}
	leave, err := files.enter(c.r.Context())
	if err != nil {
		c.failWith(err)
		return
	}
	defer leave()
	if at, ok := c.confirm(); ok {
		do(files.dir, path, at)
	}
}

// getFile is GET /v1/files/{path}: the content as it is; the ETag is the version.
func (c *call) getFile() {
	c.inFiles(func(d *file.Dir, path string, at interlock.At) {
		f, err := d.Read(path)
		if err != nil {
			c.fileFailed(path, err, at)
			return
		}
		contentType := anyBytes
		if utf8.Valid(f.Body) {
			contentType = plainText
		}
		c.sendBytes(string(f.Version), contentType, f.Body)
	})
}

// setFile is PUT /v1/files/{path}: the body becomes the content.
func (c *call) setFile() {
	body, ok := c.content(file.MaxBytes)
	if ok {
		c.changeFile(file.Change{Body: body})
	}
}

// deleteFile is DELETE /v1/files/{path}.
func (c *call) deleteFile() { c.changeFile(file.Change{Delete: true}) }

// changeFile carries a change out. Repeating it is safe, because a change that is
// there already is a success; so it needs no Idempotency-Key.
func (c *call) changeFile(change file.Change) {
	base, refusal := fileBase(c.r.Header)
	if refusal != nil {
		c.fail(refusal)
		return
	}
	change.Base = base
	change.Agent, change.Note, change.Principal = c.r.Header.Get(
		"Interlock-Agent",
	), c.r.Header.Get("Interlock-Note"), c.identity.name()
	c.inFiles(func(d *file.Dir, path string, at interlock.At) {
		change.Path = path
		result, err := d.Write(c.r.Context(), change)
		if err != nil {
			c.fileFailed(path, err, at)
			return
		}
		j := c.reply()
		switch {
		case result.Merged:
			j.str("outcome", "merged")
		case change.Delete:
			j.str("outcome", "deleted")
		default:
			j.str("outcome", "written")
		}
		j.text("path", path)
		j.str("version", string(result.Version))
		j.int("size", int64(result.Size))
		j.bool("merged", result.Merged)
		if result.Version != file.None {
			c.w.Header().Set("ETag", `"`+string(result.Version)+`"`)
		}
		c.send(http.StatusOK, j, at)
	})
}

// fileBase reads the version that a change was made from: If-Match names it, as an ETag, and
// If-None-Match: * means that there must be no file.
func fileBase(h http.Header) (file.Version, *interlock.Error) {
	match, none := h.Values("If-Match"), h.Values("If-None-Match")
	switch {
	case len(match)+len(none) > 1:
		return "", badHeader(
			"send only one of the headers If-Match and If-None-Match, and only once",
		)
	case len(none) == 1 && none[0] == "*":
		return file.None, nil
	case len(none) == 1:
		return "", badHeader("the header If-None-Match: want *, which means that no file may exist")
	case len(match) == 0:
		return "", nil // which Write refuses
	}
	tag := match[0]
	if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' || strings.Contains(tag, ",") {
		return "", badHeader(
			"the header If-Match: want one version in the form of an ETag, with its quotation marks, found %s", clipped(tag),
		)
	}
	return file.Version(tag[1 : len(tag)-1]), nil
}

// fileFailed answers with an error of a shared directory.
func (c *call) fileFailed(path string, err error, at interlock.At) {
	if stale, ok := errors.AsType[*file.StaleError](err); ok {
		c.fileStale(stale, at)
		return
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		c.refuse(interlock.CodeNoSpace, fmt.Sprintf("the disk of the shared files is full: %q was not changed", path))
	case errors.Is(err, fs.ErrPermission):
		c.refuse(
			interlock.CodeForbidden,
			fmt.Sprintf("permission denied on %q: check the modes of the file and its directory", path),
		)
	default:
		c.failWith(err)
	}
}

// fileStale answers with the packet about a file. Its versions are hashes.
func (c *call) fileStale(stale *file.StaleError, at interlock.At) {
	refusal := stale.Unwrap().(*interlock.Error)
	j, status := c.problem(refusal.Code, refusal.Message, prose.ForCode(refusal.Code))
	j.str("conflict_kind", string(refusal.ConflictKind))
	change := &stale.Packet.Changes[0]
	j.open("packet")
	j.openArray("stale")
	j.open("")
	j.text("key", stale.Path)
	for _, side := range []struct {
		name    string
		version file.Version
		d       *interlock.Document
	}{{"then", stale.Then, &change.Then}, {"now", stale.Now, &change.Now}} {
		j.open(side.name)
		j.str("version", string(side.version))
		switch {
		case side.d.Absent:
			j.bool("absent", true)
		case side.name == "now" || change.Known:
			j.int("size", int64(side.d.Size))
		}
		writeAuthor(j, side.d)
		j.close()
	}
	j.count("writes", uint64(change.Writes))
	if len(change.Between) > 0 {
		j.openArray("between")
		for i := range change.Between {
			j.open("")
			j.str("version", string(stale.Between[i]))
			if change.Between[i].Absent {
				j.bool("absent", true)
			}
			writeAuthor(j, &change.Between[i])
			j.close()
		}
		j.closeArray()
	}
	j.count("more_between", uint64(change.Left))
	writeDifference(j, change)
	j.close()
	j.closeArray()
	j.bool("more", stale.Packet.More)
	j.note("message", stale.Packet.Message)
	j.close()
	c.sendAs(status, problemType, j, at)
}

// writeAuthor writes the author of a file, as far as that is known.
func writeAuthor(j *jsonOut, d *interlock.Document) {
	j.said("agent", d.Agent)
	j.said("principal", d.Principal)
	if d.Note != "" {
		j.note("note", d.Note)
	}
	j.duration("age_ms", d.Age)
}
