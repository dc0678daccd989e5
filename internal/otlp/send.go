package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/invisible"
)

// answerBytes are read of an answer at most.
const answerBytes = 64 << 10

// The tries of Traces; the pause after the first one, which doubles; the longest pause that a collector may ask for.
const (
	traceTries    = 4
	tracePause    = time.Second
	longestPause  = 30 * time.Second
	traceDeadline = 10 * time.Second // of one try
)

// Sender posts to a collector. It follows no redirect, because headers are credentials.
type Sender struct {
	endpoint string
	headers  http.Header
	version  string
	client   http.Client
}

// NewSender makes a sender. Without a transport it uses http.DefaultTransport.
func NewSender(endpoint string, headers http.Header, version string, transport http.RoundTripper) *Sender {
	return &Sender{endpoint: endpoint, headers: headers, version: version, client: http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Refusal is a collector's answer other than success.
type Refusal struct {
	Status int
	Text   string        // the answer's
	After  time.Duration // the pause that it asks for, or 0
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("the collector answers %d %s: %.200s", e.Status, http.StatusText(e.Status), e.Text)
}

// post posts once, and returns the body of the answer.
func (s *Sender) post(ctx context.Context, kind string, plain []byte) ([]byte, error) {
	var body bytes.Buffer
	packed := gzip.NewWriter(&body)
	_, err := packed.Write(plain)
	if err := errors.Join(err, packed.Close()); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, &body)
	if err != nil {
		return nil, err
	}
	r.Header = s.headers.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "interlock/"+s.version)
	answer, err := s.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may have a key in it
		}
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, &Refusal{
			Status: answer.StatusCode, Text: said(answer.Header.Get("Content-Type"), text),
			After: min(time.Duration(max(0, seconds))*time.Second, longestPause),
		}
	}
	return text, nil
}

// Traces posts spans in JSON. It tries again for some seconds if the collector cannot be reached or asks for
// that; spans have ids, so a collector that gets them twice can tell.
func (s *Sender) Traces(ctx context.Context, body []byte) error {
	for pause := tracePause; ; pause *= 2 {
		err := s.traces(ctx, body)
		refusal, answered := errors.AsType[*Refusal](err)
		if err == nil || ctx.Err() != nil || answered && !refusal.passes() || pause == tracePause<<(traceTries-1) {
			return err
		}
		wait := pause
		if answered {
			wait = max(wait, refusal.After)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// passes reports whether the same request may succeed later, as OTLP has it.
func (e *Refusal) passes() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (s *Sender) traces(ctx context.Context, body []byte) error {
	short, cancel := context.WithTimeout(ctx, traceDeadline)
	defer cancel()
	text, err := s.post(short, "application/json", body)
	if err != nil {
		return err
	}
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"` // a string in OTLP, which Number accepts
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return nil // a proxy's own words
	}
	if part := answer.PartialSuccess; part.RejectedSpans != "" && part.RejectedSpans != "0" {
		return &Refusal{Status: http.StatusOK, Text: fmt.Sprintf(
			"%s spans are rejected: %s", invisible.Line(string(part.RejectedSpans)), invisible.Line(part.ErrorMessage),
		)}
	}
	return nil
}

// said is the text of an answer for people.
func said(contentType string, body []byte) string {
	if strings.HasPrefix(contentType, "application/x-protobuf") {
		return "(in protobuf)"
	}
	return invisible.Line(strings.ToValidUTF8(string(body), "?"))
}
