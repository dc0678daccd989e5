package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// A client that is killed after any of its messages, with the answer unread, leaves nothing.
func TestKilledClient(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`
	script := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		fmt.Sprintf(call, 2, "acquire", `{"keys":["a"]}`),
		"stray",
		fmt.Sprintf(call, 3, "acquire", `{"keys":["held"],"wait_s":0}`),
		fmt.Sprintf(call, 4, "acquire", `{"keys":["held"],"wait_s":40}`),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`,
		fmt.Sprintf(call, 5, "acquire", `{"keys":["b"]}`),
		fmt.Sprintf(call, 6, "look", `{}`),
	}
	for n := range len(script) + 1 {
		for _, read := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d messages, read %t", n, read), func(t *testing.T) {
				inBubble(t, func(r *rig) {
					other := r.overHTTP(newRevision, "other")
					lease := other.call("granted", "acquire", keys("held")).Lease
					inRead, in := io.Pipe()
					out, outWrite := io.Pipe()
					direct := api.New(api.Config{
						Bases:     []*url.URL{{Scheme: "http", Host: "127.0.0.1"}},
						Transport: agent.Local(r.api.Handler),
					})
					done := make(chan struct{})
					r.busy.Go(func() {
						defer close(done)
						_ = ServeStdio(r.Context(), StdioConfig{API: direct, Agent: "killed"}, inRead, outWrite)
					})
					answers := bufio.NewReader(out)
					r.busy.Go(func() {
						for read {
							if _, err := answers.ReadString('\n'); err != nil {
								return
							}
						}
					})
					lines := make(chan string, n)
					r.busy.Go(func() { // a process that does not read holds only this up
						for line := range lines {
							_, _ = io.WriteString(in, line+"\n")
						}
					})
					for _, line := range script[:n] {
						lines <- line
						pass(time.Millisecond)
					}
					close(lines)
					_ = out.Close()
					_ = in.Close()
					pass(time.Second)
					select {
					case <-done:
					default:
						t.Error("the process goes on")
					}
					other.call("released", "release", arguments{"lease": lease})
					pass(time.Second)
					for _, key := range []string{"a", "b", "held"} {
						if got := r.holder(key); got != "" {
							t.Errorf("%s is held by %s", key, got)
						}
					}
				})
			})
		}
	}
}
