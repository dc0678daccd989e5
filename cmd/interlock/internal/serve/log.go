package serve

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// logFormats are the forms of the log.
var logFormats = []string{"text", "json", "gcp"}

// logger returns a log in the configured form.
func (c *serveConfig) logger(to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.level}
	switch c.LogFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(to, options))
	case "gcp":
		options.ReplaceAttr = forCloudLogging(os.Getenv("GOOGLE_CLOUD_PROJECT"))
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// forCloudLogging returns a function that renames what Google Cloud Logging has a meaning for. Without a project a
// trace is its id alone.
//
//	level        severity
//	msg          message
//	trace_id     logging.googleapis.com/trace          projects/PROJECT/traces/ID
//	span_id      logging.googleapis.com/spanId
//	trace_flags  logging.googleapis.com/trace_sampled  true if the last bit is set
func forCloudLogging(project string) func([]string, slog.Attr) slog.Attr {
	traces := ""
	if project != "" {
		traces = "projects/" + project + "/traces/"
	}
	return func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		switch a.Key {
		case slog.LevelKey:
			if level, ok := a.Value.Any().(slog.Level); ok {
				return slog.String("severity", severity(level))
			}
		case slog.MessageKey:
			a.Key = "message"
		case "trace_id":
			return slog.String("logging.googleapis.com/trace", traces+a.Value.String())
		case "span_id":
			a.Key = "logging.googleapis.com/spanId"
		case "trace_flags":
			flags := a.Value.String()
			bits, err := strconv.ParseUint(flags, 16, 8)
			return slog.Bool("logging.googleapis.com/trace_sampled", err == nil && bits&1 == 1)
		}
		return a
	}
}

// severity is the name of a level in Google Cloud Logging.
func severity(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "DEBUG"
	case level < slog.LevelWarn:
		return "INFO"
	case level < slog.LevelError:
		return "WARNING"
	}
	return "ERROR"
}

// quietFor is how long a cause is silent after its line, and mostCauses how many are remembered.
const (
	quietFor   = time.Minute
	mostCauses = 1000
)

// quiet passes one warning or error on for each cause in a minute: an engine that is away fails each shard twice a
// second. A line has the number of those that were left out before it, as repeated. A cause is the message and its
// fields; numbers do not count, and neither do the digits of an error, so it is one for all shards. At level debug
// every line is passed on.
type quiet struct {
	slog.Handler
	fields string // of WithAttrs
	causes *causes
}

type causes struct {
	mu   sync.Mutex
	last map[string]*cause
}

type cause struct {
	at      time.Time // of its last line
	leftOut int       // lines since then
}

func newQuiet(h slog.Handler) slog.Handler {
	return &quiet{Handler: h, causes: &causes{last: map[string]*cause{}}}
}

// Handle implements slog.Handler.
func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || q.Enabled(ctx, slog.LevelDebug) {
		return q.Handler.Handle(ctx, r)
	}
	key := r.Message + q.fields
	r.Attrs(func(a slog.Attr) bool { key += causeOf(a); return true })
	leftOut, due := q.causes.due(key, r.Time)
	if !due {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", leftOut))
	}
	return q.Handler.Handle(ctx, r)
}

// due reports whether a line of a cause is written, and how many were left out since the last one that was.
func (c *causes) due(key string, at time.Time) (leftOut int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) >= mostCauses {
		maps.DeleteFunc(c.last, func(_ string, k *cause) bool { return at.Sub(k.at) >= quietFor })
	}
	switch k := c.last[key]; {
	case k == nil && len(c.last) < mostCauses:
		c.last[key] = &cause{at: at}
	case k == nil:
	case at.Sub(k.at) < quietFor:
		k.leftOut++
		return 0, false
	default:
		leftOut = k.leftOut
		*k = cause{at: at}
	}
	return leftOut, true
}

// causeOf returns what a field adds to a cause.
func causeOf(a slog.Attr) string {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindDuration, slog.KindTime:
		return "|"
	}
	text := v.String()
	if _, failed := v.Any().(error); failed || a.Key == "error" {
		text = strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return -1
			}
			return r
		}, text)
	}
	return "|" + a.Key + "=" + text
}

// WithAttrs implements slog.Handler.
func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := q.fields
	for _, a := range attrs {
		fields += causeOf(a)
	}
	return &quiet{q.Handler.WithAttrs(attrs), fields, q.causes}
}

// WithGroup implements slog.Handler.
func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{q.Handler.WithGroup(name), q.fields + "|" + name, q.causes}
}

// linesTogether are most of the bytes of a log that are written at once: so many a pipe takes
// whole, so that nothing else that is written to it stands inside a line.
const linesTogether = 4096

// collector keeps lines of log back until they are flushed or become too many, so that a busy
// server does not call the system for each. Each Write is whole lines; one goroutine at a
// time uses it. (A bufio.Writer splits lines, and takes nothing more once a write has failed.)
type collector struct {
	to   io.Writer
	kept []byte
}

func (c *collector) Write(lines []byte) (int, error) {
	if len(c.kept)+len(lines) > linesTogether {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	c.kept = append(c.kept, lines...)
	return len(lines), nil
}

// flush writes the held-back lines. Lines that cannot be written are lost.
func (c *collector) flush() error {
	kept := c.kept
	c.kept = c.kept[:0]
	if len(kept) == 0 {
		return nil
	}
	_, err := c.to.Write(kept)
	return err
}
