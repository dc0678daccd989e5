package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// writeDocuments writes an array of documents, with their bodies if values is set,
// or else those that are there.
func writeDocuments(j *jsonOut, name string, list []interlock.Document, values bool) {
	room := 0
	for i := range list {
		room += len(list[i].Body)
	}
	j.b = slices.Grow(j.b, room+room/16) // a buffer that grows by steps is some times as large on the heap
	j.openArray(name)
	for i := range list {
		writeDocument(j, "", &list[i], values || list[i].Body != nil)
	}
	j.closeArray()
}

// writeEvidence writes the documents that come with a lease or a task, and their earlier authors.
func writeEvidence(j *jsonOut, list []interlock.Document) {
	j.openArray("documents")
	for i := range list {
		d := &list[i]
		j.open("")
		j.str("key", string(d.Key))
		writeVersion(j, d)
		switch {
		case isTruncated(*d):
			j.bool("truncated", true)
		case !d.Absent:
			writeBody(j, d.ContentType, d.Body)
		}
		if len(d.Earlier) > 0 {
			j.openArray("earlier")
			for k := range d.Earlier {
				writeDocumentState(j, "", &d.Earlier[k])
			}
			j.closeArray()
		}
		j.close()
	}
	j.closeArray()
}

// isTruncated reports whether there was no room for a document's body.
func isTruncated(d interlock.Document) bool { return d.Size > 0 && d.Body == nil }

// writeDocument writes a document, with its body if value is set.
func writeDocument(j *jsonOut, name string, d *interlock.Document, value bool) {
	j.open(name)
	j.str("key", string(d.Key))
	writeVersion(j, d)
	if !d.Absent && value {
		writeBody(j, d.ContentType, d.Body)
	}
	j.close()
}

// writeBody writes the body of a document: JSON as the value that it is, other text as a
// string, and the rest in Base64, also when bytes of no type look like text. A body is data
// that must come back as it was, so nothing is cleaned out of it.
func writeBody(j *jsonOut, contentType string, body []byte) {
	switch {
	case !utf8.Valid(body) || isType(contentType, "application/octet-stream"):
		j.name("base64")
		j.b = append(j.b, '"')
		j.b = base64.StdEncoding.AppendEncode(j.b, body)
		j.b = append(j.b, '"')
	case isJSONType(contentType) && json.Valid(body):
		j.value("value", body)
	default:
		j.name("text")
		j.b = appendJSONString(j.b, body)
	}
}

// value writes valid JSON on one line, harmless inside a page.
func (j *jsonOut) value(name string, value []byte) {
	j.name(name)
	var line, harmless bytes.Buffer
	_ = json.Compact(&line, value) // it is valid
	json.HTMLEscape(&harmless, line.Bytes())
	j.b = append(j.b, harmless.Bytes()...)
}

// isType reports whether a content type is of a kind, with any parameters.
func isType(contentType, kind string) bool {
	found, _, err := mime.ParseMediaType(contentType)
	return err == nil && found == kind
}

// isJSONType reports whether a content type is that of JSON.
func isJSONType(contentType string) bool {
	if contentType == interlock.JSONType {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == interlock.JSONType || strings.HasSuffix(kind, "+json"))
}
