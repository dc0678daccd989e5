package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// Origin is what the API sees of an agent's own request: the credential, the namespace, and the
// headers and addresses that tell the server a program from a page of another site. The
// zero Origin is for a process that calls with a credential of its own.
type Origin struct {
	header http.Header
	host   string
	remote string
	local  net.Addr
}

// originHeaders are the headers of an agent's request that its calls of the API have, too.
var originHeaders = []string{"Authorization", "Interlock-Namespace", "Origin", "Sec-Fetch-Site"}

// OriginOf returns the Origin of a request.
func OriginOf(r *http.Request) Origin {
	o := Origin{header: http.Header{}, host: r.Host, remote: r.RemoteAddr}
	for _, name := range originHeaders {
		if values := r.Header[name]; values != nil {
			o.header[name] = values
		}
	}
	o.local, _ = r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return o
}

type originKey struct{}

// Local returns a transport that calls h within the process. A call is for the Origin of its Caller:
// h sees the host, the addresses and the headers of the agent's own request.
func Local(h http.Handler) http.RoundTripper { return local{h} }

type local struct{ handler http.Handler }

// RoundTrip returns when h has begun its answer. The call's context is that of h.
func (l local) RoundTrip(out *http.Request) (*http.Response, error) {
	ctx := out.Context()
	o, _ := ctx.Value(originKey{}).(Origin)
	if o.local != nil {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, o.local)
	}
	in := out.Clone(ctx)
	in.RequestURI = out.URL.RequestURI()
	in.RemoteAddr = o.remote
	if in.Host == "" {
		in.Host = out.URL.Host
	}
	if o.host != "" {
		in.Host = o.host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &answer{header: http.Header{}, begun: make(chan struct{})}
	w.reader, w.writer = io.Pipe()
	go func() {
		err := io.EOF
		defer func() {
			if thrown := recover(); thrown != nil {
				err = errAborted
			}
			w.WriteHeader(http.StatusOK)
			_ = w.writer.CloseWithError(err)
		}()
		l.handler.ServeHTTP(w, in)
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		_ = w.reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: w.reader, ContentLength: -1, Request: out,
	}, nil
}

// errAborted means that the handler broke its answer off.
var errAborted = errors.New("agent: the answer was broken off")

// answer is the ResponseWriter of a call within the process.
type answer struct {
	header, sent http.Header
	status       int
	once         sync.Once
	begun        chan struct{} // closed when status and sent are set
	reader       *io.PipeReader
	writer       *io.PipeWriter
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.writer.Write(b)
}

// Flush does nothing: what is written is there.
func (a *answer) Flush() {}
