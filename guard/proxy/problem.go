package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
)

// A refusal is an answer of the proxy's own: a problem document (RFC 9457) in the form that
// Interlock's have. Refusals of Interlock itself are forwarded unchanged.
type refusal struct {
	status   int
	code     interlock.Code
	detail   string
	key      interlock.Key
	action   interlock.Action
	after    time.Duration
	next     string
	document []byte // Interlock's own
}

func (r *refusal) Error() string { return string(r.code) + ": " + r.detail }

// problemBase is where a problem's type leads: the section of docs/errors.md.
const problemBase = "https://github.com/interlockdev/interlock/blob/main/docs/errors.md#"

// titles of the proxy's own refusals.
var titles = map[interlock.Code]string{
	interlock.CodeInvalidRequest:   "The request is malformed",
	interlock.CodeInvalidID:        "Invalid id",
	interlock.CodeBodyTooLarge:     "The body is too large",
	interlock.CodeUnsupported:      "Not supported by this version",
	interlock.CodeLeaseRequired:    "An exclusive lease is required",
	interlock.CodeMethodNotAllowed: "Method not allowed",
	interlock.CodeFenced:           "The fence does not belong to a live lease",
	interlock.CodeInvalidStatement: "Invalid signed fence",
	interlock.CodeForeignFence:     "The fence is for another key or namespace",
	interlock.CodeForbidden:        "No route allows this call",
	interlock.CodeForeignHost:      "The request is for another host",
	interlock.CodeOverloaded:       "The guard is overloaded",
	interlock.CodeUnreachable:      "A guard cannot reach its backend",
	interlock.CodeOutcomeUnknown:   "Outcome unknown",
}

// statusOf is for the codes with which a signed fence is refused.
var statusOf = map[interlock.Code]int{
	interlock.CodeInvalidStatement: http.StatusUnauthorized,
	interlock.CodeForeignFence:     http.StatusForbidden,
	interlock.CodeFenced:           http.StatusConflict,
}

// write sends the refusal. The header distinguishes it from an answer of the API.
func (r *refusal) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set(headerRefused, string(r.code))
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if r.after > 0 {
		header.Set("Retry-After", strconv.Itoa(int((r.after+time.Second-1)/time.Second)))
	}
	body := r.document
	if body == nil {
		body = r.compose()
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(body) // a client that does not read it does not want it
}

func (r *refusal) compose() []byte {
	type advice struct {
		Action     interlock.Action `json:"action"`
		RetryAfter int64            `json:"retry_after_ms"`
		Message    string           `json:"message"`
	}
	body, _ := json.Marshal(struct { // strings and numbers alone: it cannot fail
		Type      string         `json:"type"`
		Title     string         `json:"title"`
		Status    int            `json:"status"`
		Code      interlock.Code `json:"code"`
		Detail    string         `json:"detail"`
		Retryable bool           `json:"retryable"`
		Key       interlock.Key  `json:"key,omitempty"`
		Advice    advice         `json:"advice"`
	}{
		problemBase + string(r.code), titles[r.code], r.status, r.code, r.detail, r.code.Retryable(), r.key,
		advice{r.action, r.after.Milliseconds(), r.next},
	})
	return body
}

// refusalOf returns the refusal that a failed question means for the caller.
func refusalOf(err error, key interlock.Key) *refusal {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own
	}
	if passed, ok := errors.AsType[*passedError](err); ok {
		return &refusal{
			status: http.StatusConflict, code: interlock.CodeFenced, key: key, detail: passed.Error(), action: interlock.ActStop,
			next: "do not write: your lease has ended, and another holder has the key. Acquire again, read again, then " +
				"decide again",
		}
	}
	if errors.Is(err, errCrowded) {
		return overloaded(err.Error())
	}
	if told, ok := errors.AsType[*interlock.Error](err); ok { // of a signed fence
		advice := told.Advice
		if advice == (interlock.Advice{}) {
			advice = interlock.Advice{
				Action:  interlock.ActRetry,
				Message: "get a signed fence of a live lease on the key, and send the call again with it",
			}
		}
		return &refusal{
			status: statusOf[told.Code], code: told.Code, key: key, detail: told.Message,
			action: advice.Action, after: advice.RetryAfter, next: advice.Message,
		}
	}
	if said, ok := errors.AsType[*apiclient.Refusal](err); ok {
		switch said.Code {
		case interlock.CodeUnauthenticated, interlock.CodeForbidden, interlock.CodeForeignHost,
			interlock.CodeInvalidNamespace:
			// That is about the proxy, not about its caller.
			return unreachable("Interlock refuses the guard: its credential, namespace or address is wrong")
		}
		return &refusal{status: said.Status, code: said.Code, detail: said.Detail, document: said.Document}
	}
	return unreachable("the guard cannot reach Interlock, so it refuses all calls")
}

func unreachable(detail string) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, code: interlock.CodeUnreachable, detail: detail, action: interlock.ActRetry,
		after: 2 * time.Second,
		next:  "nothing was done: repeat the request a little later, and tell the guard's operator if this persists",
	}
}
