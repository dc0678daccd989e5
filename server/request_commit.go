package server

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// maxCommitBody bounds the body of POST /v1/commits: documents of MaxCommitBytes in
// Base64, and what stands around them.
const maxCommitBody = 2 << 20

// Content types of bodies that come as text or as bytes.
const (
	plainText = "text/plain; charset=utf-8"
	anyBytes  = "application/octet-stream"
)

// decodeCommit reads the body of POST /v1/commits.
func decodeCommit(d *jsonIn, cmd *engine.Commit) {
	d.commitRequest(cmd)
	if len(cmd.Reads) == 0 && len(cmd.Writes) == 0 {
		d.fail("fields reads and writes are missing: name the documents that were read with their versions, the writes, " +
			"or both")
	}
}

func (d *jsonIn) leaseID() interlock.LeaseID {
	id, err := interlock.ParseLeaseID(d.str())
	// The id of zeros means "no lease" further in.
	if (err != nil || id.IsZero()) && d.err == nil {
		d.err = badID("lease", "l_")
	}
	return id
}

// read reads one read of a commit.
func (d *jsonIn) read() (r interlock.Read) {
	has := d.readRequest(&r)
	var given []string
	for _, x := range []struct {
		name  string
		given bool
	}{{"version", has&readHasVersion != 0}, {"absent", r.Absent}, {"present", r.Present}} {
		if x.given {
			given = append(given, x.name)
		}
	}
	switch {
	case d.err != nil:
	case r.Key == "":
		d.fail("field %s: key is missing", d.path)
	case len(given) == 0:
		d.fail(
			"field %s: use the version that was read, or \"absent\": true if there was none, or \"present\": true to accept "+
				"any version",
			d.path,
		)
	case len(given) > 1:
		d.fail("field %s.%s: %s or %[2]s, not both", d.path, given[1], given[0])
	}
	return r
}

var writeFields = []string{"key", "put", "text", "base64", "content_type", "delete", "merge", "add", "min", "max"}

// write reads one change: of put, text, base64, delete, merge and add exactly one is its kind.
func (d *jsonIn) write() (w interlock.Write) {
	var how string
	what := func(name string, op interlock.WriteOp) {
		if how != "" {
			d.fail("field %s: a write has %s or %s, not both", d.path, how, name)
		}
		how, w.Op = name, op
	}
	d.object(writeFields, func(field int) {
		switch name := writeFields[field]; name {
		case "key":
			w.Key = interlock.Key(d.str())
		case "put":
			what(name, interlock.Put)
			w.Body = bytes.Clone(d.any(maxDocumentDepth))
		case "merge":
			what(name, interlock.Merge)
			w.Body = bytes.Clone(d.any(maxDocumentDepth))
		case "text":
			what(name, interlock.Put)
			w.Body = []byte(d.str())
		case "base64":
			what(name, interlock.Put)
			w.Body = d.base64()
		case "delete":
			what(name, interlock.Delete)
			if !d.yes() {
				d.fail("field %s: want true, or omit the field", d.path)
			}
		case "add":
			what(name, interlock.Add)
			w.Delta = d.int()
		case "content_type":
			w.ContentType = d.str()
		case "min":
			w.Min = d.bound()
		case "max":
			w.Max = d.bound()
		}
	})
	switch {
	case d.err != nil:
	case w.Key == "":
		d.fail("field %s: key is missing", d.path)
	case how == "":
		d.fail("field %s: the operation is missing: use put, text, base64, delete, merge or add", d.path)
	case w.ContentType != "" && w.Op != interlock.Put:
		d.fail("field %s: content_type is only for put, text and base64: omit it", d.path)
	case (w.Min != nil || w.Max != nil) && w.Op != interlock.Add:
		d.fail("field %s: min and max are only for add: omit them", d.path)
	case how == "put" && w.ContentType != "" && !isJSONType(w.ContentType):
		d.fail("field %s: put is for JSON: send a document of type %q as text or base64", d.path, clipped(w.ContentType))
	case how == "text" && w.ContentType == "":
		w.ContentType = plainText
	case how == "base64" && w.ContentType == "":
		w.ContentType = anyBytes
	}
	return w
}

func (d *jsonIn) bound() *int64 {
	v := d.int()
	return &v
}

func (d *jsonIn) base64() []byte {
	b, err := base64.StdEncoding.Strict().DecodeString(d.str())
	if err != nil && d.err == nil {
		d.err = &interlock.Error{Code: interlock.CodeInvalidRequest, Message: fmt.Sprintf(
			"field %s: want standard Base64 with its padding", d.path,
		)}
	}
	return b
}
