package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/interlockdev/interlock/engine"
)

const (
	// postTimeout bounds one request, its answer included.
	postTimeout = 10 * time.Second
	// maxAnswerBytes bounds what is read of an answer.
	maxAnswerBytes = 64 << 10
)

// newClient returns the client for all requests to receivers.
func newClient(t *Targets) *http.Client {
	return &http.Client{
		Timeout:       postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            t.dial, // and no Proxy: the environment decides nothing
			TLSHandshakeTimeout:    dialTimeout,
			ResponseHeaderTimeout:  postTimeout,
			MaxResponseHeaderBytes: 16 << 10,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           100,
			MaxIdleConnsPerHost:    2,
			MaxConnsPerHost:        0,
			IdleConnTimeout:        30 * time.Second,
		},
	}
}

// Answer is the result of one request to a receiver.
type Answer struct {
	Status     int    // 0: none came
	Problem    string // why it counts as failed, "" for success
	retryAfter time.Duration
}

func (a Answer) delivered() bool { return a.Problem == "" }

// gone reports whether the receiver wants no more messages.
func (a Answer) gone() bool { return a.Status == http.StatusGone }

// post sends one message, signed.
func post(ctx context.Context, client *http.Client, w *engine.WebhookView, id string, body []byte) Answer {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	now := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{Problem: "the URL cannot be used"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "interlock-webhook")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("webhook-signature", signatures(w, id, now, body))
	answer, err := client.Do(r)
	if err != nil {
		return Answer{Problem: problemOf(err)}
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswerBytes) // so that the connection may be used again
	a := Answer{Status: answer.StatusCode}
	switch {
	case a.Status >= 200 && a.Status < 300:
	case a.Status >= 300 && a.Status < 400:
		a.Problem = "the receiver redirects, and redirects are not followed: set the webhook to its new URL"
	default:
		a.Problem = "the receiver answered " + strconv.Itoa(a.Status)
		a.retryAfter = retryAfter(answer.Header.Get("Retry-After"), now)
	}
	return a
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// problemOf describes the error of a request without the URL and the address, which may be secrets.
func problemOf(err error) string {
	var timeout net.Error
	var dns *net.DNSError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, errTarget):
		return errTarget.Error()
	case errors.As(err, &dns):
		return "the host's name cannot be resolved"
	case errors.As(err, &verify), errors.As(err, &unknown):
		return "the receiver's certificate cannot be verified"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the receiver did not answer within " + postTimeout.String()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, context.Canceled):
		return "the request was ended with the server"
	}
	return "the connection failed"
}
