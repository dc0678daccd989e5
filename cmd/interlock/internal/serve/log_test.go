package serve

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writes notes what is written at once.
type writes struct {
	got  []string
	fail error
}

func (w *writes) Write(b []byte) (int, error) {
	w.got = append(w.got, string(b))
	return len(b), w.fail
}

// Lines go out whole, in their order, as many at once as a pipe takes whole.
func TestLinesOfLogGoOutTogether(t *testing.T) {
	var to writes
	c := &collector{to: &to}
	third, long := strings.Repeat("a", linesTogether/3-1)+"\n", strings.Repeat("b", 2*linesTogether)+"\n"
	for _, line := range []string{third, third, third, third, long, "c\n"} {
		if n, err := c.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("%d bytes were taken, %v", n, err)
		}
	}
	if want := []string{third + third + third, third, long}; !slices.Equal(to.got, want) {
		t.Errorf("written were %.20q", to.got)
	}
	for range 2 {
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
	}
	if len(to.got) != 4 || to.got[3] != "c\n" {
		t.Errorf("written were %.20q", to.got)
	}

	to.fail = errors.New("no space")
	_, _ = c.Write([]byte("lost\n"))
	if err := c.flush(); !errors.Is(err, to.fail) {
		t.Errorf("flush says %v", err)
	}
	to.fail = nil
	if err := c.flush(); err != nil || len(to.got) != 5 {
		t.Errorf("what was lost is written again: %v, %.20q", err, to.got)
	}
}

// Google Cloud Logging finds the severity, the message and the trace under the names that it knows; the rest stays.
func TestLogForGoogleCloud(t *testing.T) {
	cfg := serveConfig{LogFormat: "gcp", level: slog.LevelDebug}
	for _, tt := range []struct {
		project, flags, want string
		level                slog.Level
	}{
		{"swarm-1", "01", `"severity":"WARNING","message":"lease ended","agent":"a","logging.googleapis.com/trace":` +
			`"projects/swarm-1/traces/0af7651916cd43dd8448eb211c80319c","logging.googleapis.com/spanId":"b7ad6b7169203331",` +
			`"logging.googleapis.com/trace_sampled":true}`, slog.LevelWarn},
		{"", "00", `"severity":"DEBUG","message":"lease ended","agent":"a","logging.googleapis.com/trace":` +
			`"0af7651916cd43dd8448eb211c80319c","logging.googleapis.com/spanId":"b7ad6b7169203331",` +
			`"logging.googleapis.com/trace_sampled":false}`, slog.LevelDebug},
		{"", "0b", `,"logging.googleapis.com/trace_sampled":true}`, slog.LevelInfo},
		{"", "0a", `,"logging.googleapis.com/trace_sampled":false}`, slog.LevelError},
	} {
		t.Setenv("GOOGLE_CLOUD_PROJECT", tt.project)
		var line bytes.Buffer
		cfg.logger(&line).Log(
			t.Context(), tt.level, "lease ended", "agent", "a", "trace_id", "0af7651916cd43dd8448eb211c80319c", "span_id",
			"b7ad6b7169203331", "trace_flags", tt.flags,
		)
		got := strings.TrimSpace(line.String())
		if !strings.HasSuffix(got, tt.want) || !strings.HasPrefix(got, `{"time":"2`) {
			t.Errorf("project %q: %s\nwant     ...%s", tt.project, got, tt.want)
		}
	}
	var line bytes.Buffer
	cfg.logger(&line).Info("ready", "level", "high", slog.Group("inside", "msg", "kept", "trace_id", "kept"))
	if got := line.String(); !strings.Contains(got, `"severity":"INFO","message":"ready","level":"high"`) ||
		!strings.Contains(got, `"inside":{"msg":"kept","trace_id":"kept"}`) {
		t.Errorf("a group is %s", got)
	}
}

// A cause has one line in a minute, whatever number its fields have; the next one counts those between. What is no
// warning, or another cause, is never left out.
func TestACauseHasALineAMinute(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var out bytes.Buffer
		log := slog.New(newQuiet(slog.NewJSONHandler(&out, nil)))
		now := time.Unix(0, 0)
		last, more := map[string]time.Time{}, map[string]int{}
		for range 300 {
			now = now.Add(time.Duration(random.IntN(8000)) * time.Millisecond)
			level := []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError}[random.IntN(3)]
			host, why, logger := string(rune('a'+random.IntN(2))), "refused", log
			if random.IntN(2) == 0 {
				why = "full"
			}
			r := slog.NewRecord(now, level, "it failed", 0)
			r.Add("shard", random.IntN(16), "error", fmt.Errorf("index %d: %s", random.IntN(1000), why))
			if random.IntN(2) == 0 {
				logger = log.With("http", "h1"+host)
			} else {
				r.Add("http", "h2"+host)
				host += "2"
			}
			if err := logger.Handler().Handle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			// Levels share a cause: the message is the same.
			key := host + why
			at, known := last[key]
			want := ""
			switch {
			case level == slog.LevelInfo:
				want = "{"
			case known && now.Sub(at) < time.Minute:
				more[key]++
			default:
				want = "{"
				if n := more[key]; n > 0 {
					want = fmt.Sprintf(`"repeated":%d}`, n)
				}
				last[key], more[key] = now, 0
			}
			if got := out.String(); (want == "") != (got == "") || !strings.Contains(got, want) ||
				!strings.Contains(want, "repeated") && strings.Contains(got, "repeated") {
				t.Fatalf("seed %d: the line is %q, want %q", seed, got, want)
			}
			out.Reset()
		}
	}
}

// At level debug nothing is left out, and so many causes that they are not remembered are.
func TestEveryLineIsLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newQuiet(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.Warn("again")
	log.Warn("again")
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
	out.Reset()
	log = slog.New(newQuiet(slog.NewTextHandler(&out, nil)))
	for i := range 2 * mostCauses {
		log.Warn("again", "name", strconv.Itoa(i))
	}
	if n := strings.Count(out.String(), "\n"); n != 2*mostCauses {
		t.Errorf("%d lines, want %d", n, 2*mostCauses)
	}
}
