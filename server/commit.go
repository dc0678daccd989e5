package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// commitState is POST /v1/commits.
func (c *call) commitState() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Commit{Head: h}
	if c.bodyUpTo(maxCommitBody, func(d *jsonIn) { decodeCommit(d, cmd) }) {
		c.committed(cmd)
	}
}

// setState is PUT /v1/state/{key}: the body, of any type, becomes the document.
func (c *call) setState() {
	w := interlock.Write{Op: interlock.Put, ContentType: c.r.Header.Get("Content-Type")}
	switch {
	case w.ContentType == "":
		c.statusOverride = http.StatusUnsupportedMediaType
		c.refuse(
			interlock.CodeInvalidRequest,
			"the header Content-Type is missing: send the type of the document, such as application/json",
		)
	case isType(w.ContentType, formType):
		c.statusOverride = http.StatusUnsupportedMediaType
		c.refuse(
			interlock.CodeInvalidRequest,
			"content type "+formType+
				", the default of curl: send -H 'Content-Type: application/json', or the type of the document",
		)
	default:
		c.writeState(w)
	}
}

// formType is the content type that curl sends by default.
const formType = "application/x-www-form-urlencoded"

// mergePatchType is the content type of RFC 7396.
const mergePatchType = "application/merge-patch+json"

// updateState is PATCH /v1/state/{key}.
func (c *call) updateState() {
	if kind := c.r.Header.Get("Content-Type"); kind != mergePatchType {
		c.statusOverride = http.StatusUnsupportedMediaType
		c.refuse(
			interlock.CodeInvalidRequest,
			fmt.Sprintf("content type %q: send the header Content-Type: %s", clipped(kind), mergePatchType),
		)
		return
	}
	c.writeState(interlock.Write{Op: interlock.Merge})
}

// deleteState is DELETE /v1/state/{key}.
func (c *call) deleteState() { c.writeState(interlock.Write{Op: interlock.Delete}) }

// writeState commits a write of the key in the path. The other fields of the body of POST
// /v1/commits are headers.
func (c *call) writeState(w interlock.Write) {
	h, ok := c.mutating()
	if !ok {
		return
	}
	if w.Key, ok = c.pathKey(); !ok {
		return
	}
	cmd := &engine.Commit{Head: h}
	if err := commitHeaders(c.r.Header, w.Key, cmd); err != nil {
		c.fail(err)
		return
	}
	if w.Op != interlock.Delete {
		if w.Body, ok = c.content(interlock.MaxDocumentBytes); !ok {
			return
		}
	}
	cmd.Writes = []interlock.Write{w}
	c.committed(cmd)
}

// commitHeaders reads the condition of a single write, and its author.
func commitHeaders(h http.Header, key interlock.Key, cmd *engine.Commit) *interlock.Error {
	read, err := condition(h, key)
	if err != nil {
		return err
	}
	cmd.Reads = read
	for name, to := range map[string]*string{
		"Interlock-Agent": &cmd.Agent, "Interlock-Flow": &cmd.Flow, "Interlock-Note": &cmd.Note,
	} {
		*to = h.Get(name)
	}
	switch list := h.Values("Interlock-Session"); len(list) {
	case 0:
	case 1:
		id, err := interlock.ParseSessionID(list[0]) // none may not be meant, so "" is refused
		if err != nil || id.IsZero() {
			return badID("session", "s_")
		}
		cmd.Session = id
	default:
		return badHeader("the header Interlock-Session must occur once")
	}
	for _, list := range h.Values("Interlock-Lease") {
		for text := range strings.SplitSeq(list, ",") {
			id, err := interlock.ParseLeaseID(strings.Trim(text, " \t"))
			if err != nil || id.IsZero() {
				return badID("lease", "l_")
			}
			cmd.Leases = append(cmd.Leases, id)
		}
	}
	return nil
}

// condition reads If-Match and If-None-Match: the version that was read, or that there
// must be something, or nothing.
func condition(h http.Header, key interlock.Key) ([]interlock.Read, *interlock.Error) {
	match, none := h.Values("If-Match"), h.Values("If-None-Match")
	switch {
	case len(match) == 0 && len(none) == 0:
		return nil, nil
	case len(match)+len(none) > 1:
		return nil, badHeader(
			"send only one of the headers If-Match and If-None-Match, and only once",
		)
	case len(none) == 1 && none[0] == "*":
		return []interlock.Read{{Key: key, Absent: true}}, nil
	case len(none) == 1:
		return nil, badHeader("the header If-None-Match: want *, which means that no document may exist")
	case match[0] == "*":
		return []interlock.Read{{Key: key, Present: true}}, nil
	}
	tag := match[0]
	if len(tag) > 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
		if v, err := parseDecimal(tag[1 : len(tag)-1]); err == nil {
			return []interlock.Read{{Key: key, Version: interlock.Version(v)}}, nil
		}
	}
	return nil, badHeader(
		"the header If-Match: want one version in the form of an ETag, such as \"57\" with its quotation marks, found %s",
		clipped(tag),
	)
}

func badHeader(format string, args ...any) *interlock.Error {
	return &interlock.Error{Code: interlock.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// committed carries out a commit and answers with its documents.
func (c *call) committed(cmd *engine.Commit) {
	eff, at, ok := c.do(cmd)
	if !ok {
		return
	}
	j := c.reply()
	j.str("outcome", committed)
	j.decimal("version", uint64(eff.Version))
	writeDocuments(j, "documents", eff.Documents, false)
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, prose.For(&eff))
	c.send(http.StatusOK, j, at)
}
