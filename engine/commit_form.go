package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// CommitEntryBytes is the maximum length of a commit's entry: the bodies that it writes, and
// for each write the rest of its event. An entry may be longer by the events of timers that
// were due in the same step.
const CommitEntryBytes = interlock.MaxCommitBytes + interlock.MaxWrites*writtenBytes

// writtenBytes is as long as an event record.Written can be without its body: a note, a
// key, and other texts and numbers.
const writtenBytes = interlock.MaxNoteBytes + interlock.MaxKeyBytes + 1<<10

// usualBytes is how long it mostly is.
const usualBytes = 160

// checkCommit normalises a commit and returns a refusal if its form is wrong, or nil.
func checkCommit(c *Commit) *store.Refusal {
	if problem := checkNamespace(c.Namespace); problem != nil {
		return &store.Refusal{Code: interlock.CodeInvalidNamespace, Message: problem}
	}
	if code, problem := store.CheckTexts(
		store.Text{Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes},
		store.Text{Name: "note", Value: c.Note, Limit: interlock.MaxNoteBytes},
	); code != "" {
		return &store.Refusal{Code: code, Message: problem}
	}
	switch {
	case len(c.Writes) > interlock.MaxWrites:
		return invalid("", message.New(message.WriteCount, message.Num(len(c.Writes)), message.Num(interlock.MaxWrites)))
	case len(c.Leases) > interlock.MaxClaims:
		return invalid("", message.New(message.LeaseCount, message.Num(len(c.Leases)), message.Num(interlock.MaxClaims)))
	}
	if no := checkReads(c.Reads); no != nil {
		return no
	}
	size := 0
	for i := range c.Writes {
		w := &c.Writes[i]
		if no := checkDocumentKey(w.Key); no != nil {
			return no
		}
		if no := c.checkWrite(i); no != nil {
			no.Key = w.Key
			return no
		}
		if size += len(w.Body); size > interlock.MaxCommitBytes {
			return &store.Refusal{
				Code: interlock.CodeBodyTooLarge, Key: w.Key,
				Message: message.New(message.BodiesTooLarge, message.Num(interlock.MaxCommitBytes)),
			}
		}
	}
	return nil
}

// checkReads returns a refusal if the form of a list of reads is wrong, or nil.
func checkReads(list []interlock.Read) *store.Refusal {
	if len(list) > interlock.MaxReads {
		return invalid("", message.New(message.ReadCount, message.Num(len(list)), message.Num(interlock.MaxReads)))
	}
	for i := range list {
		r := &list[i]
		if no := checkDocumentKey(r.Key); no != nil {
			return no
		}
		if r.Present && (r.Absent || r.Version > 0) {
			return invalid(r.Key, message.New(message.ReadContradicts, message.Str(r.Key)))
		}
	}
	return nil
}

func invalid(key interlock.Key, problem *message.Text) *store.Refusal {
	return &store.Refusal{Code: interlock.CodeInvalidRequest, Key: key, Message: problem}
}

func checkDocumentKey(key interlock.Key) *store.Refusal {
	if problem := keypath.Problem(string(key)); problem != nil {
		shown := keypath.Clip(string(key), 64)
		return &store.Refusal{
			Code: interlock.CodeInvalidKey, Key: interlock.Key(shown),
			Message: message.New(message.InvalidKey, message.Str(shown), message.Sub(problem)),
		}
	}
	return nil
}

// checkWrite normalises a write and returns a refusal if its form is wrong, or nil.
func (c *Commit) checkWrite(i int) *store.Refusal {
	w := &c.Writes[i]
	adds := w.Delta != 0 || w.Min != nil || w.Max != nil
	switch {
	case w.Op < interlock.Put || w.Op > interlock.Add:
		return invalid(w.Key, message.New(message.UnknownWrite, message.Str(w.Key), message.Num(w.Op)))
	case w.Op != interlock.Add && adds:
		return invalid(w.Key, message.New(message.WriteNotAdd, message.Str(w.Key), message.Str(w.Op.String())))
	case w.Op != interlock.Put && w.ContentType != "":
		return invalid(w.Key, message.New(message.WriteNotPut, message.Str(w.Key), message.Str(w.Op.String())))
	case w.Op != interlock.Put && w.Op != interlock.Merge && len(w.Body) > 0:
		return invalid(w.Key, message.New(message.WriteWithBody, message.Str(w.Key), message.Str(w.Op.String())))
	case w.Min != nil && w.Max != nil && *w.Min > *w.Max:
		return invalid(
			w.Key, message.New(message.CounterBounds, message.Str(w.Key), message.Num(*w.Min), message.Num(*w.Max)),
		)
	case len(w.Body) > interlock.MaxDocumentBytes:
		return &store.Refusal{
			Code: interlock.CodeBodyTooLarge,
			Message: message.New(
				message.DocumentTooLarge, message.Str(w.Key), message.Num(len(w.Body)), message.Num(interlock.MaxDocumentBytes),
			),
		}
	case w.Op == interlock.Merge:
		if problem := c.problemOf(i); problem != nil {
			return &store.Refusal{
				Code: interlock.CodeBadPatch, Message: message.New(message.BadPatch, message.Str(w.Key), message.Sub(problem)),
			}
		}
		return nil
	case w.Op != interlock.Put:
		return nil
	}
	if w.ContentType == "" {
		w.ContentType = interlock.JSONType
	}
	if problem := contentTypeProblem(w.ContentType); problem != nil {
		return invalid(w.Key, message.New(message.BadContentType, message.Str(w.Key), message.Sub(problem)))
	}
	if !isJSON(w.ContentType) {
		return nil
	}
	if problem := c.problemOf(i); problem != nil {
		return invalid(
			w.Key, message.New(message.BadBody, message.Str(w.Key), message.Sub(problem), message.Str(w.ContentType)),
		)
	}
	return nil
}

// contentTypeProblem returns the error in a content type, in words that follow it, or "".
func contentTypeProblem(s string) *message.Text {
	if len(s) > interlock.MaxContentTypeBytes {
		return message.New(message.ContentTypeTooLong, message.Num(len(s)), message.Num(interlock.MaxContentTypeBytes))
	}
	slash := false
	for _, b := range []byte(s) {
		if b < ' ' || b >= 0x7f {
			return message.New(message.ContentTypeCharacters)
		}
		slash = slash || b == '/'
	}
	if !slash {
		return message.New(message.NotAMediaType)
	}
	return nil
}
