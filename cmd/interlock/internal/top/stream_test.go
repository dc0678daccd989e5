package top

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// answers is a server that answers each request with the next of a list.
func answers(t *testing.T, list ...func(http.ResponseWriter)) *cli.App {
	t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != overviewPath {
			t.Errorf("a request for %s", r.URL)
		}
		if n < len(list) {
			list[n](w)
		}
		n++
	}))
	t.Cleanup(server.Close)
	a := &cli.App{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Output: "text"}
	var err error
	if a.Server.Bases, err = api.ParseBases([]string{server.URL}); err != nil {
		t.Fatal(err)
	}
	return a
}

func stream(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
	}
}

func refusal(status int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		const document = `{"code":%q,"detail":"no","title":"no","status":%d,"advice":{"action":"stop","message":"m"}}`
		fmt.Fprintf(w, document, code, status)
	}
}

// Pictures go on across a connection that breaks and a server that shuts down, and end with a refusal for good.
func TestFollow(t *testing.T) {
	ctx := busy.Context(t)
	forbidden := refusal(http.StatusForbidden, "forbidden")
	a := answers(
		t,
		stream("event: picture\ndata: {\"n\":1}\n\nevent: picture\ndata: {\"n\":2}\n\n"),
		stream("event: picture\ndata: {\"n\":3}\n\n"+
			"event: end\ndata: {\"event\":\"end\",\"code\":\"shutting_down\",\"detail\":\"bye\",\"retryable\":true}\n\n"),
		stream("event: picture\ndata: {\"n\":4}\n\nevent: other\ndata: {}\n\n"),
		forbidden, forbidden,
	)
	var got, told []string
	err := follow(ctx, a, func(raw []byte) error {
		got = append(got, string(raw))
		return nil
	}, func(why error) { told = append(told, a.Sentence(why)) })
	if want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}; !slices.Equal(got, want) {
		t.Errorf("pictures %q", got)
	}
	if !cli.IsRefused(err, interlock.CodeForbidden) {
		t.Errorf("it ends with %v", err)
	}
	if len(told) != 3 || told[0] != errCut.Error() || !strings.Contains(told[1], "bye") {
		t.Errorf("told %q", told)
	}
}

// A printer of n frames ends after them.
func TestPrinted(t *testing.T) {
	ctx := busy.Context(t)
	picture := "event: picture\ndata: {\"verdict\":\"No agent waits.\"}\n\n"
	a := answers(t, stream(picture+picture+picture))
	if err := printed(ctx, a, &model{view: viewKeys}, 2); err != nil {
		t.Fatal(err)
	}
	out := a.Out.(*bytes.Buffer).String()
	if strings.Count(out, "No agent waits.") != 2 || !strings.Contains(out, "no key is held") {
		t.Errorf("printed\n%s", out)
	}
	a = answers(t, stream(picture+picture))
	a.Output = "json"
	if err := printed(ctx, a, &model{}, 2); err != nil {
		t.Fatal(err)
	}
	if out := a.Out.(*bytes.Buffer).String(); out != strings.Repeat("{\"verdict\":\"No agent waits.\"}\n", 2) {
		t.Errorf("printed %q", out)
	}
	broken := answers(t, stream("event: picture\ndata: {\n\n"))
	if err := printed(ctx, broken, &model{}, 1); err == nil || errors.Is(err, errCut) {
		t.Errorf("a picture that cannot be read ends it with %v", err)
	}
}
