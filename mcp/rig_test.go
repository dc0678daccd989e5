package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/test/apitest"
)

// The revisions that the tests speak.
const (
	oldRevision = "2025-11-25"
	newRevision = "2026-07-28"
)

// rig is a door in front of a server in the same process, in fake time.
type rig struct {
	*testing.T
	api     apitest.API
	handler *Handler
	busy    sync.WaitGroup
	ends    []func()
}

func inBubble(t *testing.T, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t}
		r.api.Open(t)
		r.handler = NewHandler(HandlerConfig{API: r.api.Handler})
		defer func() {
			for _, end := range r.ends {
				end()
			}
			r.handler.Close()
			r.busy.Wait()
			r.api.Close()
		}()
		test(r)
	})
}

// client is an agent with a connection.
type client struct {
	*rig
	*sdk.ClientSession

	mu       sync.Mutex
	progress []*sdk.ProgressNotificationParams
}

// headers is a transport that adds headers to each request.
type headers struct {
	next http.RoundTripper
	set  map[string]string
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.set {
		r.Header.Set(name, value)
	}
	return h.next.RoundTrip(r)
}

func (r *rig) connect(revision string, transport sdk.Transport) *client {
	r.Helper()
	c := &client{rig: r}
	one := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, q *sdk.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.progress = append(c.progress, q.Params)
		},
	})
	session, err := one.Connect(r.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		r.Fatal(err)
	}
	c.ClientSession = session
	r.ends = append(r.ends, func() { _ = session.Close() })
	return c
}

// overHTTP connects an agent to the handler. name is its configured one, "" for none.
func (r *rig) overHTTP(revision, name string) *client {
	r.Helper()
	set := map[string]string{}
	if name != "" {
		set[agentHeader] = name
	}
	return r.connect(revision, &sdk.StreamableClientTransport{
		Endpoint: "http://localhost/mcp", MaxRetries: -1,
		HTTPClient: &http.Client{Transport: headers{agent.Local(r.handler), set}},
	})
}

// process is an agent over standard input and output.
type process struct {
	*client
	in   *io.PipeWriter
	done chan struct{} // closed when the process has ended
}

func (r *rig) overStdio(revision, name string) *process {
	r.Helper()
	return r.process(revision, StdioConfig{Agent: name})
}

func (r *rig) process(revision string, cfg StdioConfig) *process {
	r.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	p := &process{in: inWrite, done: make(chan struct{})}
	cfg.API = api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "127.0.0.1"}}, Transport: agent.Local(r.api.Handler),
	})
	r.busy.Go(func() {
		defer close(p.done)
		if err := ServeStdio(r.Context(), cfg, inRead, outWrite); err != nil {
			r.Error(err)
		}
		_ = outWrite.Close()
	})
	p.client = r.connect(revision, &sdk.IOTransport{Reader: outRead, Writer: inWrite})
	return p
}

// answered is an answer as the client got it, with its text.
type answered struct {
	answer
	text string
	err  bool
}

type arguments = map[string]any

func (c *client) try(ctx context.Context, tool string, in any, meta sdk.Meta) (*answered, error) {
	params := &sdk.CallToolParams{Name: tool, Arguments: in, Meta: meta}
	result, err := c.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	out := &answered{err: result.IsError}
	if len(result.Content) != 1 {
		c.Fatalf("%d contents", len(result.Content))
	}
	out.text = result.Content[0].(*sdk.TextContent).Text
	if result.IsError {
		if result.StructuredContent != nil {
			c.Errorf("an error has structured content: %v", result.StructuredContent)
		}
		return out, nil
	}
	if err := json.Unmarshal([]byte(out.text), &out.answer); err != nil {
		c.Fatalf("%s: %v", out.text, err)
	}
	var text any
	_ = json.Unmarshal([]byte(out.text), &text)
	if a, b := encode(c, text), encode(c, result.StructuredContent); a != b {
		c.Errorf("the text and the structured content differ:\n%s\n%s", a, b)
	}
	if !strings.HasPrefix(out.text, `{"message":`) {
		c.Errorf("the message is not first: %s", out.text)
	}
	return out, nil
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// call calls a tool, and checks how its answer begins.
func (c *client) call(outcome, tool string, in any) *answered {
	c.Helper()
	return c.callWith(outcome, tool, in, nil)
}

func (c *client) callWith(outcome, tool string, in any, meta sdk.Meta) *answered {
	c.Helper()
	out, err := c.try(c.Context(), tool, in, meta)
	if err != nil {
		c.Fatal(err)
	}
	if out.err || out.Outcome != outcome {
		c.Fatalf("%s: got %s, want %s", tool, out.text, outcome)
	}
	return out
}

// misuse calls a tool wrongly, and returns the sentence.
func (c *client) misuse(tool string, in any) string {
	c.Helper()
	out, err := c.try(c.Context(), tool, in, nil)
	if err != nil {
		c.Fatal(err)
	}
	if !out.err {
		c.Fatalf("%s %v: got %s, want an error", tool, in, out.text)
	}
	return out.text
}

// holder is the agent that holds a key, "" if it is free.
func (r *rig) holder(key string) string {
	r.Helper()
	req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://localhost"+keyPath("keys", key), nil)
	res, err := agent.Local(r.api.Handler).RoundTrip(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	var view api.KeyView
	if err := json.NewDecoder(res.Body).Decode(&view); err != nil {
		r.Fatal(err)
	}
	if view.Length > 0 {
		return "waiting"
	}
	if len(view.Holders) == 0 {
		return ""
	}
	return view.Holders[0].Agent
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func keys(list ...string) arguments { return arguments{"keys": list} }
