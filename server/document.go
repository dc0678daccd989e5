package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// pathKey is the key in the path: all that follows, with '/' in it, decoded exactly
// once.
func (c *call) pathKey() (interlock.Key, bool) {
	text, err := url.PathUnescape(c.variable)
	if err != nil {
		c.refuse(interlock.CodeInvalidRequest, "the path is not percent-encoded: write % as %25")
		return "", false
	}
	return c.key(text)
}

// getState is GET /v1/state/{key}: the document's bytes as they were written. Its properties
// stand in headers, and the ETag is the version.
func (c *call) getState() {
	key, ok := c.pathKey()
	if !ok {
		return
	}
	version, earlier, ok := c.versionParam("version")
	if !ok {
		return
	}
	var d interlock.Document
	var asOf interlock.Version
	var err error
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) {
		var list []interlock.Document
		list, asOf, err = e.Documents(c.namespace, []interlock.Key{key}, !earlier)
		switch {
		case err != nil:
		case earlier:
			d, err = e.DocumentAt(c.namespace, key, version)
		default:
			d = list[0]
		}
	})
	switch {
	case !ok:
	case err != nil:
		c.failWith(err)
	case d.Absent && earlier:
		c.noDocument(&d, fmt.Sprintf("there was no document at %s as of version %d", d.Key, version), interlock.Advice{
			Action: interlock.ActReRead, Message: "look at the history of the key for the versions that are kept",
		}, asOf, at)
	case d.Absent:
		c.noDocument(&d, fmt.Sprintf("there is no document at %s", d.Key), prose.ForCode(interlock.CodeUnknownDocument), asOf, at)
	default:
		c.sendDocument(&d, asOf, at)
	}
}

// noDocument answers that there is nothing, and since when.
func (c *call) noDocument(
	d *interlock.Document, detail string, advice interlock.Advice, asOf interlock.Version, at interlock.At,
) {
	j, status := c.problem(interlock.CodeUnknownDocument, detail, advice)
	j.str("key", string(d.Key))
	j.decimal("version", uint64(d.Version))
	j.decimal("as_of", uint64(asOf))
	c.sendAs(status, problemType, j, at)
}

// sendDocument answers with a document's bytes.
func (c *call) sendDocument(d *interlock.Document, asOf interlock.Version, at interlock.At) {
	h := c.w.Header()
	h.Set("Interlock-As-Of", asOf.String())
	h.Set("Interlock-Shard", strconv.FormatUint(uint64(at.Shard), 10))
	h.Set("Interlock-Epoch", at.Epoch.String())
	h.Set("Interlock-Index", at.Index.String())
	c.sendBytes(d.Version.String(), d.ContentType, d.Body)
}

// sendBytes answers with an agent's document or file, in some version and under a content
// type of its choice: a browser must not run it as a page of this server.
func (c *call) sendBytes(version, contentType string, body []byte) {
	tag := `"` + version + `"`
	h := c.w.Header()
	h.Set("ETag", tag)
	h.Set("Interlock-Version", version)
	h["Cache-Control"] = noCache
	h["X-Content-Type-Options"] = noSniff
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	c.answered = true
	if hasTag(c.r.Header.Values("If-None-Match"), tag) {
		c.status = http.StatusNotModified
		c.w.WriteHeader(c.status)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.write(body)
}

// noCache lets a document be kept, if it is asked for with its ETag each time.
var noCache = []string{"no-cache"}

// hasTag reports whether tag is among those of If-None-Match.
func hasTag(headers []string, tag string) bool {
	for _, header := range headers {
		for one := range strings.SplitSeq(header, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// versionParam reads a version from a parameter, if it is there.
func (c *call) versionParam(name string) (v interlock.Version, given, ok bool) {
	text := c.query.Get(name)
	if text == "" {
		return 0, false, true
	}
	n, err := parseDecimal(text)
	if err != nil {
		c.refuse(
			interlock.CodeInvalidRequest, fmt.Sprintf("parameter %s: want a version such as 57, found %q", name, clipped(text)),
		)
		return 0, false, false
	}
	return interlock.Version(n), true, true
}

// boolParam reads a parameter that is true or false; false when it is not there.
func (c *call) boolParam(name string) (yes, ok bool) {
	switch c.query.Get(name) {
	case "", "false":
		return false, true
	case "true":
		return true, true
	}
	c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf("parameter %s: want true or false", name))
	return false, false
}

// listState is GET /v1/state: some documents as of one moment, or a listing.
func (c *call) listState() {
	values, ok := c.boolParam("values")
	if !ok {
		return
	}
	names, named := c.query["key"]
	if !named {
		c.listDocuments(values)
		return
	}
	for _, other := range []string{"prefix", "cursor", "limit"} {
		if c.query.Has(other) {
			c.refuse(
				interlock.CodeInvalidRequest, fmt.Sprintf("parameter %s is for a listing: omit it, or omit key", other),
			)
			return
		}
	}
	c.snapshot(names, values)
}

// snapshot reads several keys as of one moment.
func (c *call) snapshot(names []string, values bool) {
	keys := make([]interlock.Key, len(names))
	for i, name := range names {
		keys[i] = interlock.Key(name)
	}
	var list []interlock.Document
	var asOf interlock.Version
	var err error
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { list, asOf, err = e.Documents(c.namespace, keys, values) })
	switch {
	case !ok:
		return
	case err != nil:
		c.failWith(err)
		return
	}
	j := c.reply()
	writeDocuments(j, "documents", list, values)
	j.decimal("as_of", uint64(asOf))
	c.send(http.StatusOK, j, at)
}

func (c *call) listDocuments(values bool) {
	list := engine.DocumentList{Namespace: c.namespace, Bodies: values}
	var ok bool
	if list.Prefix, ok = c.prefixParam(); !ok {
		return
	}
	limit, ok := c.intParam("limit", 100, 1, 1000)
	if !ok {
		return
	}
	list.Limit = int(limit)
	listing := fmt.Sprintf("state %q %t", list.Prefix, values)
	after, ok := c.openCursor(listing)
	if !ok {
		return
	}
	list.After = interlock.Key(after)
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	writeDocuments(j, "documents", list.Rows, values)
	j.decimal("as_of", uint64(list.AsOf))
	if n := len(list.Rows); list.More && n > 0 {
		j.str("cursor", c.makeCursor(listing, string(list.Rows[n-1].Key)))
	}
	c.send(http.StatusOK, j, at)
}

// listVersions is GET /v1/history/{key}: the newest version first.
func (c *call) listVersions() {
	key, ok := c.pathKey()
	if !ok {
		return
	}
	values, ok := c.boolParam("values")
	if !ok {
		return
	}
	var list []interlock.Document
	var trimmed bool
	var err error
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { list, trimmed, err = e.Versions(c.namespace, key) })
	switch {
	case !ok:
		return
	case err != nil:
		c.failWith(err)
		return
	}
	if !values {
		for i := range list {
			list[i].Body = nil
		}
	}
	j := c.reply()
	writeDocuments(j, "versions", list, values)
	j.bool("trimmed", trimmed)
	c.send(http.StatusOK, j, at)
}
