package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastBatches is the newest revision with batches.
const lastBatches = "2025-03-26"

// onlyOne refuses a batch of another revision.
const onlyOne = "batches exist in revision " + lastBatches + " only: send one message"

// requestHeader tells a handler of a process the id of its call.
const requestHeader = "Interlock-Call"

// lines is the connection of a process: one message a line, in each direction. A line that is no message is answered
// with an error, and the conversation goes on: JSON-RPC 2.0 wants that, and a stray print of a wrapper must not cost
// an agent its leases. Only the end of the input ends it.
type lines struct {
	in       *bufio.Reader
	ended    context.CancelFunc // called when the client has gone
	cancel   func(id string)    // called for a cancellation
	sent     func(id string)    // called when a call has its answer
	incoming chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once

	// A client that does not read must not keep this from noticing that it has gone: the reader never waits for pen.
	pen   chan struct{} // full while a line is written
	out   io.Writer
	later chan []byte // written when pen is free; dropped if there are too many

	mu       sync.Mutex
	revision string            // that the client has asked for
	begun    bool              // the client has said that it begins
	first    string            // the id of the first initialize, "" before it
	welcome  json.RawMessage   // its result
	open     map[string]*batch // the calls without an answer, by their ids; nil for one without a batch

	owed    atomic.Int64  // answers that are not written yet
	written chan struct{} // has an element after one was
}

// lastAnswers is how long the calls before the end of the input may take, as of a script that pipes them in. What a
// call has taken is given back when the process ends.
const lastAnswers = time.Second

// batch is an array of messages, which is answered by an array.
type batch struct {
	left    int
	answers []json.RawMessage
}

// Connect implements sdk.Transport.
func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	l.incoming, l.closed, l.open = make(chan jsonrpc.Message), make(chan struct{}), map[string]*batch{}
	l.pen, l.later, l.written = make(chan struct{}, 1), make(chan []byte, maxBatch), make(chan struct{}, 1)
	go l.read()
	go func() {
		for {
			select {
			case text := <-l.later:
				_ = l.write(text)
				l.owe(-1)
			case <-l.closed:
				return
			}
		}
	}()
	return l, nil
}

// SessionID implements sdk.Connection.
func (l *lines) SessionID() string { return "" }

// Close implements sdk.Connection.
func (l *lines) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Read implements sdk.Connection.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-l.incoming:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the input until its end.
func (l *lines) read() {
	defer close(l.incoming)
	defer l.ended()
	defer l.drain()
	for {
		line, err := l.line()
		if bad, ok := errors.AsType[*wrong](err); ok {
			l.refuse(bad)
			continue
		}
		// Some programs write a NUL where they mean a blank.
		if line = bytes.Trim(line, " \t\r\n\x00"); len(bytes.TrimPrefix(line, mark)) > 0 && !l.take(line) {
			return
		}
		if err != nil {
			return
		}
	}
}

// owe counts the answers that are not written yet.
func (l *lines) owe(n int) {
	l.owed.Add(int64(n))
	select {
	case l.written <- struct{}{}:
	default:
	}
}

// drain waits for the answers that are owed.
func (l *lines) drain() {
	limit := time.NewTimer(lastAnswers)
	defer limit.Stop()
	for l.owed.Load() > 0 {
		select {
		case <-l.written:
		case <-l.closed:
			return
		case <-limit.C:
			return
		}
	}
}

// line reads one line. One that is too long is skipped.
func (l *lines) line() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line) <= maxMessage {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > maxMessage+1 && err == nil {
				return nil, &wrong{code: invalidRequest, text: "the line is too long: send at most 1 MiB in one message"}
			}
			return line, err
		}
	}
}

// take hands the messages of a line on. It reports whether the connection goes on.
func (l *lines) take(line []byte) bool {
	list, many, err := readMessages(line)
	batches := l.spoken() != "" && l.spoken() <= lastBatches
	if many && err == nil && !batches {
		err = &wrong{code: invalidRequest, text: onlyOne + " a line"}
	}
	messages := make([]jsonrpc.Message, len(list))
	for i := range list {
		if err == nil {
			messages[i], err = decode(&list[i])
		}
	}
	if err == nil {
		err = l.enter(list, many)
	}
	if bad, ok := errors.AsType[*wrong](err); ok {
		if many || bad.ids == nil {
			bad.answerAll(line, many && batches) // without batches, one by one
		}
		l.refuse(bad)
		return true
	}
	for i, m := range messages {
		if l.isRepeated(&list[i]) {
			continue
		}
		if list[i].method == "notifications/cancelled" {
			l.cancel(cancelledID(&list[i]))
		}
		select {
		case l.incoming <- m:
		case <-l.closed:
			return false
		}
	}
	return true
}

// isRepeated reports whether a message begins a conversation that has begun already. It is answered as the first time:
// what multiplexes clients, and a client that begins again over the same pipe, speak for the same agent.
func (l *lines) isRepeated(m *message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case m.method == "notifications/initialized":
		old := l.begun
		l.begun = true
		return old
	case m.method != "initialize" || !m.isCall():
		return false
	case l.welcome == nil:
		l.first = string(m.id)
		return false
	}
	delete(l.open, string(m.id))
	l.owe(-1)
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.id, "result": l.welcome})
	l.queue(text)
	return true
}

// decode makes a message of the protocol.
func decode(m *message) (jsonrpc.Message, error) {
	out, err := jsonrpc.DecodeMessage(m.raw)
	if err != nil {
		return nil, &wrong{code: invalidRequest, text: "the message is not of JSON-RPC 2.0: " + clip(err.Error(), 40)}
	}
	if r, ok := out.(*jsonrpc.Request); ok && m.isCall() {
		r.Extra = &sdk.RequestExtra{Header: http.Header{requestHeader: {string(m.id)}}}
	}
	return out, nil
}

// cancelledID is the id of the call that a client cancels.
func cancelledID(m *message) string {
	var params map[string]json.RawMessage
	_ = json.Unmarshal(m.params, &params)
	return string(idOf(params["requestId"]))
}

func (l *lines) spoken() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revision
}

// enter notes the calls among some messages.
func (l *lines) enter(list []message, many bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var one *batch
	if many {
		one = &batch{}
	}
	ids := map[string]bool{}
	for i := range list {
		m := &list[i]
		if m.method == "initialize" {
			l.revision = revisionOf(m)
		}
		if !m.isCall() {
			continue
		}
		if _, open := l.open[string(m.id)]; open || ids[string(m.id)] {
			return &wrong{code: invalidRequest, text: fmt.Sprintf(
				"a call with the id %s has no answer yet: give each call an id of its own", clip(string(m.id), 16),
			), ids: []json.RawMessage{m.id}}
		}
		ids[string(m.id)] = true
	}
	l.owe(len(ids))
	for id := range ids {
		l.open[id] = one
		if many {
			one.left++
		}
	}
	return nil
}

// revisionOf is the revision that an initialize asks for.
func revisionOf(m *message) (revision string) {
	var params map[string]json.RawMessage
	_ = json.Unmarshal(m.params, &params)
	_ = json.Unmarshal(params["protocolVersion"], &revision)
	return revision
}

// Write implements sdk.Connection.
func (l *lines) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return l.write(text)
	}
	defer l.owe(-1)
	id, _ := json.Marshal(r.ID.Raw())
	l.mu.Lock()
	if l.first == string(id) && l.welcome == nil && r.Error == nil {
		l.welcome = r.Result
	}
	of := l.open[string(id)]
	delete(l.open, string(id))
	if of != nil {
		of.answers = append(of.answers, text)
		if of.left--; of.left > 0 {
			l.mu.Unlock()
			return nil
		}
		text, _ = json.Marshal(of.answers)
	}
	l.mu.Unlock()
	if err = l.write(text); err == nil {
		l.sent(string(id))
	}
	return err
}

// write writes a line. A client that does not read any more has gone.
func (l *lines) write(text []byte) error {
	select {
	case l.pen <- struct{}{}:
		defer func() { <-l.pen }()
	case <-l.closed:
		return io.ErrClosedPipe
	}
	_, err := l.out.Write(append(bytes.Clone(text), '\n'))
	if err != nil {
		l.ended()
	}
	return err
}

// refuse answers a line that is no message.
func (l *lines) refuse(bad *wrong) {
	for _, text := range bad.answers() {
		l.queue(text)
	}
}

// queue has a line written when that is possible.
func (l *lines) queue(text []byte) {
	l.owe(1)
	select {
	case l.later <- text:
	default:
		l.owe(-1)
	}
}

// answers are the errors of JSON-RPC for a message that is refused: one for each of its calls, so that none waits in
// vain, or one without an id.
func (w *wrong) answers() (list [][]byte) {
	ids := w.ids
	if w.batch && len(ids) > 0 {
		alone := *w
		alone.batch = false
		var all []json.RawMessage
		for _, one := range alone.answers() {
			all = append(all, one)
		}
		text, _ := json.Marshal(all)
		return [][]byte{text}
	}
	if len(ids) == 0 {
		ids = []json.RawMessage{json.RawMessage("null")}
	}
	for _, id := range ids {
		text, _ := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": w.code, "message": w.text},
		})
		list = append(list, text)
	}
	return list
}
