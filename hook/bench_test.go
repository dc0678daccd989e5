package hook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// BenchmarkEdit measures what hooks add to an edit of a free file: the event before the tool, which leases the file
// durably on this machine's disk, and the one after it, by a client that keeps its connection. "new" edits another
// file each time, "same" the same one. p99-ms is that of one edit, both events together.
func BenchmarkEdit(b *testing.B) {
	for _, name := range []string{"new", "same"} {
		b.Run(name, func(b *testing.B) {
			j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			sh, err := shard.Open(b.Context(), shard.Config{Journal: j})
			if err != nil {
				b.Fatal(err)
			}
			s, err := server.New(server.Config{Shard: sh})
			if err != nil {
				b.Fatal(err)
			}
			door := NewHandler(Config{API: s.HTTPHandler()})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			web := s.HTTPServer()
			web.Handler = door
			served := make(chan error, 1)
			go func() { served <- web.Serve(l) }()
			url := "http://" + l.Addr().String() + Path + "claude-code"
			calls := 0
			post := func(event string, i int) {
				calls++
				body := fmt.Sprintf(`{"session_id":"bench","hook_event_name":%q,"cwd":"/w/web","tool_name":"Edit",
					"tool_input":{"file_path":"/w/web/src/%d.go","new_string":%q},"tool_use_id":"%d"}`,
					event, i, strings.Repeat("x", 2000), calls)
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusNoContent {
					b.Fatalf("status %d, %v", res.StatusCode, err)
				}
			}
			edit := func(i int) time.Duration {
				if name == "same" {
					i = 0
				}
				begin := time.Now()
				post("PreToolUse", i)
				post("PostToolUse", i)
				return time.Since(begin)
			}
			edit(-1)
			times := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for i := range b.N {
				times = append(times, edit(i))
			}
			b.StopTimer()
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			_ = web.Close()
			<-served
			door.Close()
			if err := sh.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
