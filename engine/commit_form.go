package engine

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
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
func checkCommit(c *Commit) *refusal {
	if problem := checkNamespace(c.Namespace); problem != "" {
		return &refusal{code: interlock.CodeInvalidNamespace, message: problem}
	}
	if code, problem := checkTexts(
		text{"agent", c.Agent, interlock.MaxNameBytes}, text{"flow", c.Flow, interlock.MaxNameBytes}, text{"note", c.Note, interlock.MaxNoteBytes},
	); code != "" {
		return &refusal{code: code, message: problem}
	}
	switch {
	case len(c.Writes) > interlock.MaxWrites:
		return invalid("", fmt.Sprintf("%d writes: a commit has at most %d, so commit in several steps", len(c.Writes), interlock.MaxWrites))
	case len(c.Leases) > interlock.MaxClaims:
		return invalid("", fmt.Sprintf("%d leases: a commit names at most %d", len(c.Leases), interlock.MaxClaims))
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
			no.key = w.Key
			return no
		}
		if size += len(w.Body); size > interlock.MaxCommitBytes {
			return &refusal{code: interlock.CodeBodyTooLarge, key: w.Key, message: fmt.Sprintf(
				"the bodies of this commit have more than %d bytes together: commit in several steps, or write less", interlock.MaxCommitBytes,
			)}
		}
	}
	return nil
}

// checkReads returns a refusal if the form of a list of reads is wrong, or nil.
func checkReads(list []interlock.Read) *refusal {
	if len(list) > interlock.MaxReads {
		return invalid("", fmt.Sprintf("%d reads: at most %d are taken together", len(list), interlock.MaxReads))
	}
	for i := range list {
		r := &list[i]
		if no := checkDocumentKey(r.Key); no != nil {
			return no
		}
		if r.Present && (r.Absent || r.Version > 0) {
			return invalid(r.Key, fmt.Sprintf("of %s is said that something must be there, whatever version, and that it has a certain one or is absent", r.Key))
		}
	}
	return nil
}

func invalid(key interlock.Key, message string) *refusal {
	return &refusal{code: interlock.CodeInvalidRequest, key: key, message: message}
}

func checkDocumentKey(key interlock.Key) *refusal {
	if problem := keypath.Problem(string(key)); problem != "" {
		shown := keypath.Clip(string(key), 64)
		return &refusal{code: interlock.CodeInvalidKey, key: interlock.Key(shown), message: fmt.Sprintf("key %q %s", shown, problem)}
	}
	return nil
}

// checkWrite normalises a write and returns a refusal if its form is wrong, or nil.
func (c *Commit) checkWrite(i int) *refusal {
	w := &c.Writes[i]
	adds := w.Delta != 0 || w.Min != nil || w.Max != nil
	switch {
	case w.Op < interlock.Put || w.Op > interlock.Add:
		return invalid(w.Key, fmt.Sprintf("the write to %s has the operation %d, which does not exist", w.Key, w.Op))
	case w.Op != interlock.Add && adds:
		return invalid(w.Key, fmt.Sprintf("the write to %s has a number to add or its bounds, and is a %s", w.Key, w.Op))
	case w.Op != interlock.Put && w.ContentType != "":
		return invalid(w.Key, fmt.Sprintf("the write to %s has a content type, and is a %s: only a put names one", w.Key, w.Op))
	case w.Op != interlock.Put && w.Op != interlock.Merge && len(w.Body) > 0:
		return invalid(w.Key, fmt.Sprintf("the write to %s has a body, and is a %s", w.Key, w.Op))
	case w.Min != nil && w.Max != nil && *w.Min > *w.Max:
		return invalid(w.Key, fmt.Sprintf("the counter %s cannot be from %d to %d", w.Key, *w.Min, *w.Max))
	case len(w.Body) > interlock.MaxDocumentBytes:
		return &refusal{code: interlock.CodeBodyTooLarge, message: fmt.Sprintf(
			"the body for %s has %d bytes: a document has at most %d", w.Key, len(w.Body), interlock.MaxDocumentBytes,
		)}
	case w.Op == interlock.Merge:
		if problem := c.problemOf(i); problem != "" {
			return &refusal{code: interlock.CodeBadPatch, message: fmt.Sprintf("the merge patch for %s %s", w.Key, problem)}
		}
		return nil
	case w.Op != interlock.Put:
		return nil
	}
	if w.ContentType == "" {
		w.ContentType = interlock.JSONType
	}
	if problem := contentTypeProblem(w.ContentType); problem != "" {
		return invalid(w.Key, fmt.Sprintf("the content type of %s %s", w.Key, problem))
	}
	if !isJSON(w.ContentType) {
		return nil
	}
	if problem := c.problemOf(i); problem != "" {
		return invalid(w.Key, fmt.Sprintf("the body for %s %s, and its content type is %s", w.Key, problem, w.ContentType))
	}
	return nil
}

// contentTypeProblem returns the error in a content type, in words that follow it, or "".
func contentTypeProblem(s string) string {
	if len(s) > interlock.MaxContentTypeBytes {
		return fmt.Sprintf("has %d bytes: at most %d", len(s), interlock.MaxContentTypeBytes)
	}
	slash := false
	for _, b := range []byte(s) {
		if b < ' ' || b >= 0x7f {
			return "has characters other than visible ASCII"
		}
		slash = slash || b == '/'
	}
	if !slash {
		return "is not a media type such as text/plain"
	}
	return ""
}
