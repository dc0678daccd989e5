package packet

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// maxHeadBytes bounds what is shown of a text that there is nothing to compare with.
const maxHeadBytes = 2 << 10

// compare describes the difference in at most limit bytes, taking what it costs from work.
func (it *item) compare(limit int, work *int) interlock.Difference {
	if !it.Known {
		d := interlock.Difference{Kind: interlock.DifferenceUnknown}
		if isText(it.Now.Body) {
			d.Text, d.Cut = cut(string(it.Now.Body), min(limit, maxHeadBytes))
		}
		return d
	}
	then, now := it.Then.Body, it.Now.Body
	sizes := interlock.Difference{Kind: interlock.SizesOnly}
	switch cost := len(then) + len(now); {
	case len(then) != it.Then.Size, len(now) != it.Now.Size: // not at hand
		return sizes
	case len(then) > MaxCompareBytes, len(now) > MaxCompareBytes, cost > *work:
		return sizes
	default:
		*work -= cost
	}
	if isJSON(&it.Then) && isJSON(&it.Now) {
		if patch, isCut, ok := jsonPatch(then, now, it.Then.Absent, it.Now.Absent, limit); ok {
			return interlock.Difference{Kind: interlock.JSONPatch, Text: string(patch), Cut: isCut}
		}
	}
	if isText(then) && isText(now) {
		text, isCut := unified(it.label(&it.Then, it.then), it.label(&it.Now, it.now), string(then), string(now), limit)
		return interlock.Difference{Kind: interlock.UnifiedDiff, Text: text, Cut: isCut}
	}
	return sizes
}

// label names one side of a unified diff.
func (it *item) label(d *interlock.Document, version string) string {
	if d.Absent {
		return "/dev/null"
	}
	return visible(it.key) + "\tversion " + visible(version)
}

// isJSON reports whether a document is to be compared as JSON. One that is not there
// is as good as any.
func isJSON(d *interlock.Document) bool {
	if d.Absent || d.ContentType == interlock.JSONType {
		return true
	}
	media, _, err := mime.ParseMediaType(d.ContentType)
	return err == nil && (media == interlock.JSONType || strings.HasSuffix(media, "+json"))
}

func isText(body []byte) bool {
	return utf8.Valid(body) && bytes.IndexByte(body, 0) < 0
}
