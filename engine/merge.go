package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// JSON documents.

// isJSON reports whether a content type is one of JSON documents.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == interlock.JSONType || strings.HasSuffix(media, "+json")
}

// validJSON reports whether b is one JSON value and nothing else, in UTF-8 (RFC 8259).
func validJSON(b []byte) bool { return utf8.Valid(b) && json.Valid(b) }

// mergePatch applies a JSON merge patch (RFC 7396) to a document; both are valid. The
// members of the result's objects are sorted, and its numbers have all the digits that
// were written.
func mergePatch(document, patch []byte) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(merged(parseJSON(document), parseJSON(patch))); err != nil {
		panic("engine: a merged document cannot be written: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// merged is the algorithm of RFC 7396, section 2.
func merged(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	members, ok := target.(map[string]any)
	if !ok {
		members = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if changes[name] == nil {
			delete(members, name)
		} else {
			members[name] = merged(members[name], changes[name])
		}
	}
	return members
}

func parseJSON(b []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		panic("engine: valid JSON cannot be read: " + err.Error())
	}
	return v
}
