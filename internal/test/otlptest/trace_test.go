package otlptest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

const (
	patience = time.Minute // half of the limit of the suite
	parent   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

var binary string // of interlock

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "otlptest")
	if err == nil {
		binary = filepath.Join(dir, "interlock")
		build := exec.Command("go", "build", "-o", binary, "./cmd/interlock")
		build.Dir = "../../.."
		if text, bad := build.CombinedOutput(); bad != nil {
			err = fmt.Errorf("%w: %s", bad, text)
		}
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "otlptest:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// rig is a server, and the environment of commands for it.
type rig struct {
	*testing.T
	url string
	env []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	server := exec.Command(
		binary, "serve", "--data-dir", filepath.Join(t.TempDir(), "data"),
		"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
	)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	var addr, stream string
	if _, err := fmt.Fscanf(out, "ready http=%s grpc=%s\n", &addr, &stream); err != nil {
		t.Fatalf("the server is not ready: %v", err)
	}
	r := &rig{T: t, url: "http://" + addr}
	r.env = append(os.Environ(), "INTERLOCK_URL="+r.url, "INTERLOCK_GRPC="+stream, "OTEL_SERVICE_NAME=locks")
	return r
}

func (r *rig) command(args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Env = r.env
	return c
}

func (r *rig) must(args ...string) string {
	r.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		r.Fatalf("interlock %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// until waits for an answer of the API that contains a text.
func (r *rig) until(path, text string) {
	r.Helper()
	var last string
	for began := time.Now(); time.Since(began) < patience; <-time.After(20 * time.Millisecond) {
		answer, err := http.Get(r.url + path)
		if err != nil {
			r.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if last = string(body); strings.Contains(last, text) {
			return
		}
	}
	r.Fatalf("%s has no %s: %s", path, text, last)
}

// receiver decodes as the collector's receiver for OTLP over HTTP does.
type receiver struct {
	*testing.T
	mu   sync.Mutex
	last ptrace.Traces
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	packed, err := gzip.NewReader(q.Body)
	if err != nil {
		c.Error(err)
		return
	}
	body, err := io.ReadAll(packed)
	if err != nil || q.URL.Path != "/v1/traces" || q.Header.Get("Content-Type") != "application/json" {
		c.Errorf("%s of type %s: %v", q.URL, q.Header.Get("Content-Type"), err)
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalJSON(body); err != nil {
		c.Errorf("%v in %s", err, body)
	}
	c.mu.Lock()
	c.last = request.Traces()
	c.mu.Unlock()
	answer, err := ptraceotlp.NewExportResponse().MarshalJSON()
	if err != nil {
		c.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// lines returns a line for each span.
func lines(traces ptrace.Traces) (list []string) {
	scope := traces.ResourceSpans().At(0).ScopeSpans().At(0)
	names := map[pcommon.SpanID]string{}
	for _, s := range scope.Spans().All() {
		agent, _ := s.Attributes().Get("gen_ai.agent.name")
		names[s.SpanID()] = s.Name() + " of " + agent.AsString()
	}
	for _, s := range scope.Spans().All() {
		outcome, _ := s.Attributes().Get("interlock.outcome")
		line := names[s.SpanID()] + " " + outcome.AsString() + " " + s.Kind().String() + " " + s.Status().Code().String()
		if s.EndTimestamp() < s.StartTimestamp() || s.StartTimestamp() == 0 {
			line += " with bad times"
		}
		switch at := names[s.ParentSpanID()]; {
		case at != "":
			line += " in " + at
		case !s.ParentSpanID().IsEmpty():
			line += " in " + s.TraceID().String() + "/" + s.ParentSpanID().String()
		}
		for _, l := range s.Links().All() {
			kind, _ := l.Attributes().Get("interlock.link")
			line += ", " + kind.AsString() + " " + names[l.SpanID()]
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

func TestTraces(t *testing.T) {
	r := newRig(t)
	first := r.command("run", "account:1", "--agent", "billing-7", "--", "sh", "-c", "read line")
	first.Env = append(first.Env, "TRACEPARENT="+parent)
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	r.until("/v1/keys/account:1", "billing-7")
	second := r.command("run", "account:1", "--agent", "support-2", "--", "true")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	r.until("/v1/waits", "support-2")
	_, _ = io.WriteString(in, "\n")
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Fatal(err)
	}
	r.must("queue", "set", "sums", "--backoff", "10ms")
	r.must("task", "create", "sums", "{}", "--agent", "boss")
	r.must("task", "work", "sums", "--agent", "worker-1", "--idle", "0", "--", "true")

	c := &receiver{T: t}
	collector := httptest.NewServer(c)
	defer collector.Close()
	if out := r.must("trace", "export", "--endpoint", collector.URL); !strings.Contains(out, "exported 5 spans") {
		t.Errorf("it reports %s", out)
	}
	name, _ := c.last.ResourceSpans().At(0).Resource().Attributes().Get("service.name")
	if name.AsString() != "locks" {
		t.Errorf("the resource is %s", name.AsString())
	}
	got := strings.Join(lines(c.last), "\n")
	want := `attempt of worker-1 released Consumer Unset in task sums of boss
hold account of billing-7 released Internal Unset in 0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331
hold account of support-2 released Internal Unset in wait account of support-2, handed_on hold account of billing-7
task sums of boss done Producer Unset
wait account of support-2 granted Internal Unset, blocked_by hold account of billing-7`
	if got != want {
		t.Errorf("the collector decodes\n%s\nwant\n%s", got, want)
	}

	// The same lines, as the file receiver of the collector reads them.
	out, err := r.command("trace", "export").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(out)
	if err != nil || strings.Join(lines(file), "\n") != want {
		t.Errorf("the file has %v: %v", lines(file), err)
	}
}
