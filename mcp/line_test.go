package mcp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// piece is a line for a process, with the answers to it: "ID RESULT", where RESULT is "ok" or a code of JSON-RPC.
type piece struct {
	line string
	want []string
}

// pieceOf returns a random line. next is an id that no line has had.
func pieceOf(r *rand.Rand, next int, revision string) piece {
	call := func(id int, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	}
	ping := call(next, "ping", "{}")
	batchOf := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, call(next+i, "ping", "{}"))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	ok, no := fmt.Sprintf("%d ok", next), func(code int) string { return fmt.Sprintf("%d %d", next, code) }
	stray := func(code int) []string { return []string{fmt.Sprintf("null %d", code)} }
	all := func(n int, result string) (want []string) {
		for i := range n {
			want = append(want, fmt.Sprintf("%d %s", next+i, result))
		}
		return want
	}
	refused := fmt.Sprint(invalidRequest)
	switch r.IntN(24) {
	case 0:
		return piece{string(mark) + ping, []string{ok}}
	case 1:
		return piece{" \t" + ping + "\r", []string{ok}}
	case 2:
		return piece{"\x00" + ping + "\x00", []string{ok}}
	case 3:
		return piece{call(next, "leases/steal", "{}"), []string{no(methodNotFound)}}
	case 4:
		return piece{[]string{"starting", "{", "\x1b[31mwarning\x1b[0m", "\"", "\xff", "}{"}[r.IntN(6)], stray(parseError)}
	case 5:
		return piece{[]string{"{}", "1", "null", "\"x\"", `{"jsonrpc":"1.0"}`}[r.IntN(5)], stray(invalidRequest)}
	case 6:
		return piece{[]string{"", string(mark)}[r.IntN(2)], nil}
	case 7:
		second := call(next+1, "ping", "{}")
		return piece{ping + " " + second, []string{no(parseError), fmt.Sprintf("%d %d", next+1, parseError)}}
	case 8:
		return piece{fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"id":1,"method":"ping"}`, next), stray(invalidRequest)}
	case 9:
		method := []string{"method", `meth\u006fd`}[r.IntN(2)]
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping","%s":"tools/list"}`, next, method)
		return piece{line, []string{no(invalidRequest)}}
	case 10:
		return piece{call(next, "ping", `{"a":[{"b":1,"b":1}]}`), []string{no(invalidRequest)}}
	case 11:
		deep := strings.Repeat("[", maxDepth)
		return piece{call(next, "ping", `{"a":`+deep+strings.Repeat("]", maxDepth)+"}"), []string{no(invalidRequest)}}
	case 12:
		return piece{ping + strings.Repeat(" ", maxMessage), stray(invalidRequest)}
	case 13:
		return piece{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil}
	case 14:
		return piece{`{"jsonrpc":"2.0","method":"leases/steal"}`, nil}
	case 15:
		again := `{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`
		return piece{call(next, "initialize", again), []string{ok}}
	case 16:
		n := 1 + r.IntN(maxBatch)
		if revision > lastBatches {
			return piece{batchOf(n), all(n, refused)}
		}
		return piece{batchOf(n), all(n, "ok")}
	case 17:
		return piece{batchOf(maxBatch + 1 + r.IntN(100)), all(maxBatch, refused)}
	case 18:
		return piece{call(next, "tools/call", `{"name":"acquire","arguments":{"keys":["mine"]}}`), []string{ok}}
	case 19:
		return piece{call(next, "tools/call", `{"name":"look","arguments":{}}`), []string{ok}}
	case 20:
		// The first of two calls with one id goes on.
		wait := call(next, "tools/call", `{"name":"acquire","arguments":{"keys":["held"],"wait_s":1}}`)
		return piece{wait + "\n" + ping, []string{no(invalidRequest), ok}}
	case 21: // a batch with something in it that is no call
		wrong := []string{
			"1", "[]", "{}", strings.Replace(call(next+2, "ping", "{}"), "2.0", "1.0", 1), call(next+1, "ping", "{}"),
		}[r.IntN(5)]
		want := all(2, refused)
		if strings.Contains(wrong, "1.0") {
			want = all(3, refused)
		}
		return piece{"[" + wrong + "," + batchOf(2)[1:], want}
	case 22:
		return piece{batchOf(2)[1:], []string{no(parseError)}}
	}
	return piece{ping, []string{ok}}
}

// talker is a client of a process that writes what it likes.
type talker struct {
	*rig
	in   *io.PipeWriter
	done chan struct{}

	mu      sync.Mutex
	answers []string
}

func (r *rig) talk(name string) *talker {
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	c := &talker{rig: r, in: in, done: make(chan struct{})}
	direct := api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "127.0.0.1"}}, Transport: agent.Local(r.api.Handler),
	})
	r.busy.Go(func() {
		defer close(c.done)
		_ = ServeStdio(r.Context(), StdioConfig{API: direct, Agent: name}, inRead, outWrite)
		_ = outWrite.Close()
	})
	r.busy.Go(func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			c.hear(lines.Bytes())
		}
	})
	r.ends = append(r.ends, func() { _ = in.Close() })
	return c
}

// hear notes the answers of a line.
func (c *talker) hear(line []byte) {
	var many []json.RawMessage
	if json.Unmarshal(line, &many) != nil {
		many = []json.RawMessage{line}
	}
	for _, one := range many {
		var m struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  *struct{ Code int }
		}
		if err := json.Unmarshal(one, &m); err != nil {
			c.Errorf("the line %.200s is no answer: %v", line, err)
			continue
		}
		answer := string(m.ID) + " ok"
		if m.Error != nil {
			answer = fmt.Sprintf("%s %d", m.ID, m.Error.Code)
		}
		c.mu.Lock()
		c.answers = append(c.answers, answer)
		c.mu.Unlock()
	}
}

// say writes a line, and returns the answers that come within two seconds.
func (c *talker) say(line string) []string {
	c.busy.Go(func() { _, _ = io.WriteString(c.in, line+"\n") })
	pass(2 * time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	answers := c.answers
	c.answers = nil
	slices.Sort(answers)
	return answers
}

// seedsOf returns how many seeds a test tries.
func seedsOf(short, long uint64) uint64 {
	if testing.Short() {
		return short
	}
	return long
}

// Whatever lines a process is sent, each call among them has one answer, each line that is no message one error, and
// the conversation goes on with its lease.
func TestLines(t *testing.T) {
	for seed := range seedsOf(20, 60) {
		inBubble(t, func(rig *rig) {
			r := rand.New(rand.NewPCG(seed, 7))
			revision := []string{"2024-11-05", lastBatches, "2025-06-18", oldRevision}[r.IntN(4)]
			rig.overHTTP(newRevision, "other").call("granted", "acquire", keys("held"))
			c := rig.talk("talker")
			c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + revision +
				`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"acquire","arguments":{"keys":["mine"]}}}`)
			for next := 2; next < 2+40*200; next += 200 {
				one := pieceOf(r, next, revision)
				slices.Sort(one.want)
				if got := c.say(one.line); !slices.Equal(got, one.want) {
					t.Fatalf("seed %d, %s: the answers to %.300q are %q, want %q", seed, revision, one.line, got, one.want)
				}
				select {
				case <-c.done:
					t.Fatalf("seed %d: the process has ended after %.300q", seed, one.line)
				default:
				}
			}
			if got := rig.holder("mine"); got != "talker" {
				t.Errorf("seed %d: the key is held by %q", seed, got)
			}
		})
	}
}

// Each call before the end of the input has its answer, as where a script pipes some in; one that waits for another
// agent does not keep the process for longer than lastAnswers.
func TestAnswersAfterTheEnd(t *testing.T) {
	inBubble(t, func(rig *rig) {
		rig.overHTTP(newRevision, "other").call("granted", "acquire", keys("held"))
		call := func(id, key string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"acquire","arguments":{"keys":["` +
				key + `"],"wait_s":50}}}` + "\n"
		}
		first := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}` + "\n"
		for _, c := range []struct {
			rest string
			want []string
			took time.Duration
		}{
			{"7\n" + call("1", "a") + call("2", "b"), []string{"0 ok", "1 ok", "2 ok", "null -32600"}, 0},
			{`{"jsonrpc":"2.0","id":5,"method":"ping"}` + "\n" + call("1", "c"), []string{"0 ok", "1 ok", "5 ok"}, 0},
			{call("1", "held") + call("2", "d"), []string{"0 ok", "2 ok"}, lastAnswers},
		} {
			c1 := rig.talk("piper")
			began := time.Now()
			if _, err := io.WriteString(c1.in, first+c.rest); err != nil {
				t.Fatal(err)
			}
			_ = c1.in.Close()
			<-c1.done
			if took := time.Since(began); took != c.took {
				t.Errorf("%s: the process ended %s after its input, want %s", c.rest, took, c.took)
			}
			synctest.Wait()
			if slices.Sort(c1.answers); !slices.Equal(c1.answers, c.want) {
				t.Errorf("%s: the answers are %q, want %q", c.rest, c1.answers, c.want)
			}
		}
	})
}

// A refused batch is answered by an array where its ids can be read, else by one error.
func TestRefusedBatch(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"1.0","id":"x","method":"ping"}`
	for text, want := range map[string]string{
		"[" + one + "," + two + "]": `[1 "x"]`, "[" + one + ",7]": "[1]", "[7]": "null", "[]": "null",
		"[" + one + "," + two: "null", `[{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}]`: "null", two: `"x"`,
		`[{"jsonrpc":"2.0","id":null,"method":"ping"},` + one + "]": "[1]",
	} {
		_, _, err := readMessages([]byte(text))
		bad, ok := errors.AsType[*wrong](err)
		if !ok || len(bad.answers()) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		type answer struct{ ID json.RawMessage }
		var single answer
		var many []answer
		got := ""
		if json.Unmarshal(bad.answers()[0], &many) == nil {
			for _, one := range many {
				got += " " + string(one.ID)
			}
			got = "[" + strings.TrimSpace(got) + "]"
		} else if json.Unmarshal(bad.answers()[0], &single) == nil {
			got = string(single.ID)
		}
		if got != want {
			t.Errorf("%s is answered for %s, want %s", text, got, want)
		}
	}
}

// A batch that is too long is refused before what is behind its bound is looked at.
func TestBatchIsBoundedFirst(t *testing.T) {
	const one = `{"jsonrpc":"2.0","id":1,"method":"ping"},`
	for _, rest := range []string{"1]", "{", `{"a":1,"a":2}]`, strings.Repeat("[", 2*maxDepth), "", "\x01"} {
		_, _, err := readMessages([]byte("[" + strings.Repeat(one, maxBatch) + "{}," + rest))
		if err == nil || !strings.Contains(err.Error(), "at most 32 messages") {
			t.Errorf("%.20q behind %d messages: %v", rest, maxBatch, err)
		}
	}
}
