//go:build live

package livetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// model is a scripted model: it adds one line to a file. It reads the file, waits until its peer has
// read it, too, and writes the whole file with its line behind the lines that it has seen. When a tool
// refuses, it reads again and writes again. With a text to replace it edits the file instead.
//
//	            refused
//	read ─► write ─► done
//	  ▲───────┘
type model struct {
	*httptest.Server
	t       *testing.T
	dialect dialect
	line    string   // that it adds
	old     string   // the text that its line replaces, "" for a line at the end
	file    string   // its path, as the tools take it
	both    *barrier // of the models of one run

	mu       sync.Mutex
	refusals []string
	done     bool
}

// dialect is what a harness calls its tools.
type dialect struct {
	read, write string
	path        string // the argument with the path
	edit        string // the tool that replaces a text
	old, new    string // its arguments
}

// finished reports whether the model has written its line.
func (m *model) finished() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// barrier opens when n models are there.
type barrier struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{left: n, open: make(chan struct{})} }

// arrive returns when all have arrived once, or the request ends.
func (b *barrier) arrive(r *http.Request) {
	b.mu.Lock()
	if b.left--; b.left == 0 {
		close(b.open)
	}
	b.mu.Unlock()
	select {
	case <-b.open:
	case <-r.Context().Done():
	}
}

// heard is what a model knows at its turn: the last answer of a tool.
type heard struct {
	tool  string // "" at the beginning
	text  string
	seen  []string // lines of the file, in the order of the last reading
	reads int
}

// answer notes the answer of a tool.
func (h *heard) answer(m *model, name, text string) {
	h.tool, h.text = name, text
	if name == m.dialect.read {
		h.seen = entries(text)
		h.reads++
	}
}

var entry = regexp.MustCompile(`entry of agent-[a-z0-9-]+`)

// entries are the lines of the file in the text of a tool's answer.
func entries(text string) (list []string) {
	for _, line := range entry.FindAllString(text, -1) {
		if !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return list
}

// refused reports whether a tool's answer is a refusal.
func refused(text string) bool {
	return strings.Contains(text, "held by") || strings.Contains(text, "ead it again") || strings.Contains(text, "blocked") ||
		strings.Contains(text, "rror")
}

// next decides the model's step: a tool and its arguments, or "" after the last word.
func (m *model) next(r *http.Request, h heard) (tool string, arguments map[string]any) {
	arguments = map[string]any{m.dialect.path: m.file}
	switch {
	case h.tool == "":
		return m.dialect.read, arguments
	case h.tool == m.dialect.read:
		if h.reads == 1 {
			m.both.arrive(r)
		}
		if m.old != "" {
			arguments[m.dialect.old], arguments[m.dialect.new] = m.old, m.line
			if m.dialect.edit == "replace" {
				arguments["instruction"] = "Let the function return ten times as much." // Gemini CLI wants one
			}
			return m.dialect.edit, arguments
		}
		arguments["content"] = strings.Join(append(h.seen, m.line), "\n") + "\n"
		return m.dialect.write, arguments
	case refused(h.text):
		m.mu.Lock()
		defer m.mu.Unlock()
		// Each request has the whole conversation; this one adds one refusal.
		m.refusals = append(m.refusals, h.text)
		return m.dialect.read, arguments
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = true
	return "", nil
}

const lastWord = "The line is written."

func newModel(t *testing.T, d dialect, old, line, file string, both *barrier) *model {
	m := &model{t: t, dialect: d, old: old, line: line, file: file, both: both}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/chat/completions", m.chat)
	mux.HandleFunc("/", m.gemini)
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// gemini speaks the API of Gemini.
func (m *model) gemini(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in struct {
		Contents []struct {
			Parts []struct {
				FunctionResponse *struct {
					Name     string
					Response map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		m.t.Errorf("the request of %s is no JSON: %v", r.URL, err)
	}
	if !strings.Contains(r.URL.Path, "enerateContent") {
		fmt.Fprint(w, `{"totalTokens": 10}`)
		return
	}
	var h heard
	for _, content := range in.Contents {
		for _, part := range content.Parts {
			if f := part.FunctionResponse; f != nil {
				text, _ := json.Marshal(f.Response)
				h.answer(m, f.Name, string(text))
			}
		}
	}
	part := map[string]any{"text": lastWord}
	if tool, arguments := m.next(r, h); tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": tool, "args": arguments}}
	}
	answer, _ := json.Marshal(map[string]any{
		"candidates": []any{map[string]any{
			"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0,
		}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	})
	if strings.Contains(r.URL.Path, "streamGenerateContent") {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// chat speaks the API of chat completions.
func (m *model) chat(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Role      string
			Content   any
			ToolCalls []struct {
				ID       string
				Function struct{ Name string }
			} `json:"tool_calls"`
			ToolCallID string `json:"tool_call_id"`
		}
		Tools []any
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		m.t.Errorf("the request of %s is no JSON: %v", r.URL, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, finish any) {
		chunk, _ := json.Marshal(map[string]any{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
	defer fmt.Fprint(w, "data: [DONE]\n\n")
	if len(in.Tools) == 0 { // a title for the conversation
		send(map[string]any{"role": "assistant", "content": "a title"}, nil)
		send(map[string]any{}, "stop")
		return
	}
	var h heard
	names := map[string]string{}
	for _, message := range in.Messages {
		for _, c := range message.ToolCalls {
			names[c.ID] = c.Function.Name
		}
		if message.Role == "tool" {
			text, _ := json.Marshal(message.Content)
			h.answer(m, names[message.ToolCallID], string(text))
		}
	}
	tool, arguments := m.next(r, h)
	if tool == "" {
		send(map[string]any{"role": "assistant", "content": lastWord}, nil)
		send(map[string]any{}, "stop")
		return
	}
	text, _ := json.Marshal(arguments)
	send(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
		"index": 0, "id": fmt.Sprintf("call_%d", len(in.Messages)), "type": "function",
		"function": map[string]any{"name": tool, "arguments": string(text)},
	}}}, nil)
	send(map[string]any{}, "tool_calls")
}
