package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// Open returns the API of the journal in a directory, as connections to a server. Its errors have an exit code.
func Open(ctx context.Context, dir string) (http.RoundTripper, error) {
	r, err := filejournal.OpenReader(ctx, dir)
	if err != nil {
		return nil, cli.ExitWith(cli.ExitDamaged, err)
	}
	if r.Tail() == 0 {
		return nil, errors.Join(cli.Usagef("--data-dir %s: there is no journal", dir), r.Close())
	}
	handler, err := server.NewArchive(shard.NewArchive(r), cli.Version())
	if err != nil {
		return nil, err
	}
	return transport{handler}, nil
}

// Use has the journal in a directory answer all calls of a command. Its errors are those of Open.
func Use(ctx context.Context, a *cli.App, dir string) error {
	from, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	a.Wrap = func(http.RoundTripper) http.RoundTripper { return from }
	return nil
}

// transport has a handler answer requests.
type transport struct{ handler http.Handler }

// RoundTrip answers a request.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RequestURI, r.Host, r.RemoteAddr = r.URL.RequestURI(), r.URL.Host, "127.0.0.1:0"
	w := &recorder{status: http.StatusOK, header: http.Header{}}
	t.handler.ServeHTTP(w, r)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: r.Proto, ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }
