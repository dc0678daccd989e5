package signed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Leeway is by how much a statement's iat may be ahead of the verifier's clock. For
// exp there is none: a statement must never hold longer because of a clock.
const Leeway = time.Minute

// Want is the demand of a resource on a statement.
type Want struct {
	// Namespace in which the key is. Required: the same key in another namespace is
	// another tenant's.
	Namespace interlock.Namespace
	// Key that is to be written, in the spelling of its pattern. "" asks for none: the
	// caller then checks [Statement.Covers] itself.
	Key interlock.Key
	// Fence is the highest one that was seen of the key; a lower one is refused. 0 when
	// none was.
	Fence interlock.Fence
}

// Verify checks a statement at the time now, and returns its content. The error is an
// *interlock.Error: with CodeInvalidStatement when it is malformed, expired, from the future or
// not signed by one of the keys; with CodeForeignFence when it is of another namespace or does
// not cover the key exclusively; with CodeFenced when its fence is too low.
func (ks KeySet) Verify(statement string, now time.Time, want Want) (*Statement, error) {
	s, problem := ks.open(statement)
	if problem == "" {
		problem = s.checkTime(now)
	}
	if problem != "" {
		return nil, &interlock.Error{Code: interlock.CodeInvalidStatement, Message: "the signed fence " + problem}
	}
	switch {
	case s.Namespace != want.Namespace:
		return nil, &interlock.Error{
			Code: interlock.CodeForeignFence, Key: want.Key,
			Message: fmt.Sprintf(
				"the signed fence belongs to namespace %q, and the written key to %q: use a lease of that namespace", s.Namespace,
				want.Namespace,
			),
		}
	case want.Key != "" && !s.Covers(want.Key):
		return nil, NotCovered(want.Key)
	case s.Fence < want.Fence:
		return nil, &interlock.Error{
			Code: interlock.CodeFenced, Key: want.Key,
			Message: fmt.Sprintf(
				"fence %d is below %d, which was already seen: do not write; acquire the key again and read its "+
					"state again", s.Fence,
				want.Fence,
			),
		}
	}
	return s, nil
}

// NotCovered is the error for a statement with claims that do not let its bearer write the key.
func NotCovered(key interlock.Key) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeForeignFence, Key: key,
		Message: fmt.Sprintf(
			"the signed fence does not cover %s exclusively: acquire that key, or an ancestor of it, and sign that "+
				"lease's fence",
			key,
		),
	}
}

// open checks form and signature. The problem completes "the signed fence ...".
func (ks KeySet) open(statement string) (s *Statement, problem string) {
	if len(statement) > MaxBytes {
		return nil, fmt.Sprintf("has more than %d bytes", MaxBytes)
	}
	head, rest, ok1 := strings.Cut(statement, ".")
	body, tail, ok2 := strings.Cut(rest, ".")
	if !ok1 || !ok2 || strings.Contains(tail, ".") {
		return nil, "is malformed: want three parts with dots between"
	}
	k, problem := ks.keyFor(head)
	if problem != "" {
		return nil, problem
	}
	signature, err := decode(tail)
	if err != nil || !ed25519.Verify(k, []byte(statement[:len(statement)-len(tail)-1]), signature) {
		return nil, "has a wrong signature: it was changed, or another server signed it"
	}
	content, err := decode(body)
	if err == nil {
		s, err = decodePayload(content)
	}
	if err != nil {
		return nil, "is malformed: " + err.Error()
	}
	return s, ""
}

// maxHeader bounds the bytes that are decoded before any signature is checked.
const maxHeader = 256

// keyFor finds the key that a statement's header names.
func (ks KeySet) keyFor(head string) (k ed25519.PublicKey, problem string) {
	id, problem := keyID(head)
	if problem != "" {
		return nil, problem
	}
	k, ok := ks[id]
	if !ok {
		return nil, "was signed with a key that is not in the key set: fetch the set again, since keys are rotated"
	}
	return k, ""
}

// KeyID returns the id of the key that signed a statement, as the statement names it; "" if it
// names none.
func KeyID(statement string) string {
	head, _, _ := strings.Cut(statement, ".")
	id, _ := keyID(head)
	return id
}

// keyID returns the id of the key that a statement's header names.
func keyID(head string) (id, problem string) {
	if len(head) > maxHeader {
		return "", "is malformed: its header is too long"
	}
	given, err := decode(head)
	var h struct {
		Algorithm string `json:"alg"`
		ID        string `json:"kid"`
		Type      string `json:"typ"`
	}
	if err != nil || json.Unmarshal(given, &h) != nil {
		return "", "is malformed: its header cannot be read"
	}
	switch {
	case h.Algorithm != "EdDSA":
		return "", "has an algorithm other than EdDSA"
	case h.Type != Type:
		return "", "is a token of a type other than " + Type
	case !bytes.Equal(given, header(h.ID)):
		return "", "is malformed: its header has another form than this version writes"
	}
	return h.ID, ""
}

func (s *Statement) checkTime(now time.Time) (problem string) {
	switch {
	case !now.Before(s.Expires):
		return fmt.Sprintf("expired %v ago: sign the lease's fence again", now.Sub(s.Expires).Round(time.Second))
	case s.Issued.After(now.Add(Leeway)):
		return fmt.Sprintf("was signed %v in the future: one of the two clocks "+
			"is wrong", s.Issued.Sub(now).Round(time.Second))
	case s.Expires.Sub(s.Issued) > MaxTTL:
		return "is valid for longer than the maximum"
	}
	return ""
}
