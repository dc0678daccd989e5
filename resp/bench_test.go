package resp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// BenchmarkCycle measures SET NX PX and a compare-and-delete of 64 clients over loopback, on a journal in a
// directory.
func BenchmarkCycle(b *testing.B) {
	const clients = 64
	j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := shard.Open(b.Context(), shard.Config{Journal: j})
	if err != nil {
		b.Fatal(err)
	}
	api, err := server.New(server.Config{Shard: s})
	if err != nil {
		b.Fatal(err)
	}
	door := NewServer(Config{API: func() *server.Server { return api }})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = door.Serve(l) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		door.Shutdown(ctx)
		_ = s.Close(context.Background())
	}()
	text, err := os.ReadFile(filepath.Join("script", "testdata", "kinds", "release.lua"))
	if err != nil {
		b.Fatal(err)
	}
	sha, _, _ := door.scripts.learn(string(text))
	b.ReportAllocs()
	b.SetParallelism(clients)
	names := make(chan int, 1024)
	for i := range 1024 {
		names <- i
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		key, in := fmt.Sprint("key:", <-names), bufio.NewReader(conn)
		take := encode([]string{"SET", key, "token-of-22-characters", "NX", "PX", "30000"})
		free := encode([]string{"EVALSHA", sha, "1", key, "token-of-22-characters"})
		for pb.Next() {
			for _, c := range []struct {
				command []byte
				want    string
			}{{take, "+OK"}, {free, ":1"}} {
				_, err := conn.Write(c.command)
				got := ""
				if err == nil {
					got, err = readAnswer(in)
				}
				if err != nil || got != c.want {
					b.Error(got, err)
					return
				}
			}
		}
	})
}
