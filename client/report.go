package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

// The end of an attempt, an effect or a lease is reported with texts and values of the program. None of them may keep
// it from being reported.

// clip returns a text that the server takes: valid, and of at most n bytes.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// reasonOf returns an error as a reason. A method of the error that panics is part of the text.
func reasonOf(err error) string { return clip(fmt.Sprint(err), interlock.MaxReasonBytes) }

// resultOf returns a value as JSON. problem is why it cannot be stored, "" if it can.
func resultOf(v any) (result json.RawMessage, problem string) {
	result, err := encode(v)
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case refused:
		return nil, refusal.Message
	case len(result) > interlock.MaxResultBytes:
		problem = fmt.Sprintf("it has %d bytes, and the maximum is %d", len(result), interlock.MaxResultBytes)
	case !utf8.Valid(result):
		problem = "it is not valid UTF-8"
	}
	return result, problem
}

// unstored is the result in the place of one that cannot be stored.
func unstored(problem string) json.RawMessage {
	const most = 200
	mark, _ := json.Marshal(map[string]string{"interlock": "result not stored", "reason": clip(problem, most)})
	return mark
}

// refusedAsWrong reports whether the content of a request was refused: unchanged, it cannot succeed.
func refusedAsWrong(err error) bool {
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok || attemptOver(refusal.Code) {
		return false
	}
	switch refusal.Code {
	case interlock.CodeInvalidRequest, interlock.CodeTooLong, interlock.CodeBodyTooLarge, interlock.CodeInvalidPayload:
		return true
	}
	return refusal.Advice.Action == interlock.ActFixRequest
}
