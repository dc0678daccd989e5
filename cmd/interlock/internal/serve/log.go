package serve

import (
	"io"
	"log/slog"
	"os"
	"strconv"
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
