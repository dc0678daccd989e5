package engine

import (
	"bytes"
	"math"
	"strconv"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// writeResult is the document that a write produces.
type writeResult struct {
	body        []byte
	contentType string
}

// carryOut computes the documents that the writes of a commit make, or why they cannot be done.
// The documents that it makes have no more than interlock.MaxCommitBytes together,
// nor those that it merges into or adds to, so that a step takes no longer than it may,
// and fits an entry.
func (c *Commit) carryOut(s *store.Documents) ([]writeResult, *store.Refusal) {
	list := make([]writeResult, len(c.Writes))
	size := 0
	for i := range c.Writes {
		w, m := &c.Writes[i], &list[i]
		var old *store.DocumentVersion
		if d := s.Known[w.Key]; !d.IsAbsent() {
			old = d.Now
		}
		read := 0
		if old != nil && (w.Op == interlock.Merge || w.Op == interlock.Add) {
			read = len(old.Body)
		}
		var no *store.Refusal
		switch {
		case size+read > interlock.MaxCommitBytes: // which is refused
		case w.Op == interlock.Put:
			m.body, m.contentType = w.Body, w.ContentType
		case w.Op == interlock.Merge:
			no = m.merge(c, i, old)
		case w.Op == interlock.Add:
			no = m.add(w, old)
		}
		if size += max(read, len(m.body)); no == nil && size > interlock.MaxCommitBytes {
			no = &store.Refusal{
				Code:    interlock.CodeBodyTooLarge,
				Message: message.New(message.DocumentsOfCommitTooLarge, message.Str(w.Key), message.Num(interlock.MaxCommitBytes)),
			}
		}
		if no != nil {
			no.Key = w.Key
			return nil, no
		}
	}
	return list, nil
}

// merge applies a patch. An absent document counts as null.
func (m *writeResult) merge(c *Commit, i int, old *store.DocumentVersion) *store.Refusal {
	document := []byte("null")
	m.contentType = interlock.JSONType
	if old != nil {
		document, m.contentType = old.Body, old.ContentType
	}
	if !isJSON(m.contentType) {
		return &store.Refusal{
			Code:    interlock.CodeBadPatch,
			Message: message.New(message.PatchOnOther, message.Str(c.Writes[i].Key), message.Str(m.contentType)),
		}
	}
	m.body = mergePatch(document, c.patchOf(i))
	return nil
}

// add adds to a counter. An absent one is 0.
func (m *writeResult) add(w *interlock.Write, old *store.DocumentVersion) *store.Refusal {
	var now int64
	if old != nil {
		var err error
		if now, err = strconv.ParseInt(string(bytes.Trim(old.Body, " \t\r\n")), 10, 64); err != nil ||
			!isJSON(old.ContentType) {
			return &store.Refusal{Code: interlock.CodeNotACounter, Message: message.New(message.NotACounter, message.Str(w.Key))}
		}
	}
	sum := now + w.Delta
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	if w.Min != nil {
		least = *w.Min
	}
	if w.Max != nil {
		most = *w.Max
	}
	if (sum < now) != (w.Delta < 0) || sum < least || sum > most {
		return &store.Refusal{
			Code: interlock.CodeOutOfBounds,
			Message: message.New(
				message.OutOfBounds, message.Str(w.Key), message.Num(now), message.Num(w.Delta), message.Num(least),
				message.Num(most),
			),
		}
	}
	m.body, m.contentType = strconv.AppendInt(nil, sum, 10), interlock.JSONType
	return nil
}
