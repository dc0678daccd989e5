package api

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Unanswered means that no whole answer came.
type Unanswered struct {
	Method string
	Server string // host and port
	Err    error  // without the address that was called
}

func (e *Unanswered) Error() string { return e.Err.Error() }

func (e *Unanswered) Unwrap() error { return e.Err }

// Sent reports whether the server may have carried the request out.
func (e *Unanswered) Sent() bool {
	return e.Method != http.MethodGet && e.Dial() == nil && !e.handshake() && !e.NotHTTP()
}

// Dial returns why no connection was made, nil if one was.
func (e *Unanswered) Dial() error {
	if op, ok := errors.AsType[*net.OpError](e.Err); ok && op.Op == "dial" {
		return op.Err
	}
	return nil
}

// handshake reports whether both sides did not come to speak TLS.
func (e *Unanswered) handshake() bool {
	_, distrust := errors.AsType[*tls.CertificateVerificationError](e.Err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](e.Err)
	return distrust || noTLS || errors.Is(e.Err, http.ErrSchemeMismatch)
}

// NotHTTP reports whether the answer is not HTTP.
func (e *Unanswered) NotHTTP() bool {
	text := e.Err.Error()
	return strings.Contains(text, "malformed HTTP") || strings.Contains(text, "readLoopPeekFailLocked")
}

// Stranger means that the answer is not from an Interlock server.
type Stranger struct {
	Server string // host and port
	Status string // such as "404 Not Found"
	Body   []byte
}

func (e *Stranger) Error() string {
	return "the answer did not come from an Interlock server: " + e.Status
}

// Problem is a refusal, as its problem document (RFC 9457) has it.
type Problem struct {
	Status int // of HTTP
	Code   interlock.Code
	Detail string
	Advice interlock.Advice
	Active *ActiveServer // that a standby named; nil: none
	Body   []byte        // the document as it came
}

func (e *Problem) Error() string { return string(e.Code) + ": " + e.Detail }

// problemOf reads an answer that is none of success.
func problemOf(a *Answer, server, status string) error {
	var p ProblemDocument
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") ||
		json.Unmarshal(a.Body, &p) != nil || p.Code == "" {
		return &Stranger{Server: server, Status: status, Body: a.Body}
	}
	if p.Detail == "" {
		p.Detail = p.Title
	}
	return &Problem{
		Status: a.Status, Code: p.Code, Detail: p.Detail, Active: p.Active, Body: a.Body,
		Advice: interlock.Advice{
			Action: p.Advice.Action, Message: p.Advice.Message,
			RetryAfter: time.Duration(p.Advice.RetryAfter) * time.Millisecond,
		},
	}
}
