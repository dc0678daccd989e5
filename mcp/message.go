package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
)

const (
	// maxMessage is the length of a message in bytes: a body of the API, and what the protocol puts around it.
	maxMessage = interlock.MaxBodyBytes + 64<<10
	// maxBatch is how many messages a batch of revision 2025-03-26 has at most.
	maxBatch = 32
	// maxDepth is how deep arrays and objects of a message lie in each other.
	maxDepth = 64
)

// The codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
)

// wrong is a message that the protocol does not get to see: one full sentence, with the code of JSON-RPC for it.
type wrong struct {
	code int
	text string
	name string // that occurs twice
	// ids are those of the calls in it, as far as each has one: their clients wait for an answer.
	ids []json.RawMessage
	// batch means that they stood in an array, and are answered in one.
	batch bool
}

func (w *wrong) Error() string { return w.text }

// message is a message, or one of a batch, as far as a door looks into it.
type message struct {
	raw    json.RawMessage
	id     json.RawMessage // nil for none
	method string          // "" for an answer
	params json.RawMessage
}

// isCall reports whether the message wants an answer.
func (m *message) isCall() bool { return m.method != "" && m.id != nil }

// mark is the byte order mark, with which some programs begin a text.
var mark = []byte("\ufeff")

// readMessages reads one message, or a batch of them. It looks at each byte once before anything is decoded: at most
// maxBatch messages, no name twice in an object, no deeper than maxDepth.
func readMessages(text []byte) (list []message, batch bool, err error) {
	text = bytes.TrimPrefix(text, mark)
	if !utf8.Valid(text) {
		return nil, false, &wrong{code: parseError, text: "the message is not UTF-8: send JSON-RPC 2.0 in UTF-8"}
	}
	s := scanner{d: json.NewDecoder(bytes.NewReader(text))}
	s.d.UseNumber()
	batch, err = s.message()
	if err == nil && !json.Valid(text) {
		if _, more := s.d.Token(); !errors.Is(more, io.EOF) {
			err = &wrong{code: parseError, text: "there is something behind the message: send one message at a time, and on " +
				"standard input one a line"}
		} else {
			err = errors.New("not JSON")
		}
	}
	if err != nil {
		bad, ok := errors.AsType[*wrong](err)
		if !ok {
			bad = &wrong{code: parseError, text: "the message is not JSON: send messages of JSON-RPC 2.0"}
		}
		bad.answerAll(text, batch)
		return nil, batch, bad
	}
	var raws []json.RawMessage // and never text itself, which decoding would write over
	if !batch {
		raws = []json.RawMessage{text}
	} else if json.Unmarshal(text, &raws) != nil || len(raws) == 0 {
		return nil, batch, &wrong{code: invalidRequest, text: "the batch is empty"}
	}
	for _, raw := range raws {
		one, bad := readMessage(raw)
		if bad != nil {
			if batch {
				bad.answerAll(text, batch)
			}
			return nil, batch, bad
		}
		list = append(list, one)
	}
	return list, batch, nil
}

// readMessage reads one message that is JSON.
func readMessage(raw json.RawMessage) (m message, bad *wrong) {
	var members map[string]json.RawMessage // and not a struct, which would also take names in other cases
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return m, &wrong{code: invalidRequest, text: "the message is no object: send messages of JSON-RPC 2.0"}
	}
	m = message{raw: raw, id: idOf(members["id"]), params: members["params"]}
	no := func(format string, args ...any) *wrong {
		bad := &wrong{code: invalidRequest, text: fmt.Sprintf(format, args...)}
		if m.id != nil {
			bad.ids = []json.RawMessage{m.id}
		}
		return bad
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return m, no(`the message is not of JSON-RPC 2.0: it needs the member "jsonrpc" with the value "2.0"`)
	}
	if _, has := members["id"]; has && m.id == nil {
		return m, no("the id of a message is a string of at most %d bytes or a whole number", maxID)
	}
	method, has := members["method"]
	switch {
	case has && (json.Unmarshal(method, &m.method) != nil || m.method == ""):
		return m, no("the method of a message is a text")
	case !has && members["result"] == nil && members["error"] == nil:
		return m, no("the message has no method")
	}
	return m, nil
}

// maxID is how long the id of a call is at most.
const maxID = 256

// idOf returns an id that an answer can have, in one spelling, else nil.
func idOf(raw json.RawMessage) (id json.RawMessage) {
	var text string
	var number int64
	switch {
	case len(raw) == 0 || len(raw) > maxID || raw[0] == 'n':
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		id, _ = json.Marshal(text)
	case json.Unmarshal(raw, &number) == nil && max(number, -number) <= 1<<53: // else it would come back as another one
		id, _ = json.Marshal(number)
	}
	return id
}

// answerAll has each call in a refused text answered. Where it is not clear which ids these are there is one answer
// without an id, and so there is to an array that is not JSON.
func (w *wrong) answerAll(text []byte, batch bool) {
	if w.ids, w.batch = nil, batch; w.name != "id" && !(batch && w.code == parseError) {
		w.ids = idsIn(text)
	}
}

// idsIn returns the ids of the calls in a text that is refused, each once, as far as it can be read: among the first
// maxBatch messages.
func idsIn(text []byte) (ids []json.RawMessage) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, mark))
	d := json.NewDecoder(bytes.NewReader(text))
	batch := bytes.HasPrefix(text, []byte("["))
	if batch {
		_, _ = d.Token()
	}
	for range maxBatch {
		var members map[string]json.RawMessage
		err := d.Decode(&members)
		if _, other := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !(batch && other) {
			break
		}
		id := idOf(members["id"])
		if id != nil && members["method"] != nil &&
			!slices.ContainsFunc(ids, func(one json.RawMessage) bool { return bytes.Equal(one, id) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// scanner looks at the tokens of a message.
type scanner struct{ d *json.Decoder }

// message reads one message or a batch.
func (s *scanner) message() (batch bool, err error) {
	first, err := s.d.Token()
	if err != nil {
		return false, err
	}
	if first != json.Delim('[') {
		return false, s.value(first, 1)
	}
	for n := 0; s.d.More(); n++ {
		if n == maxBatch {
			return true, &wrong{code: invalidRequest, text: fmt.Sprintf(
				"a batch has at most %d messages: send fewer at a time", maxBatch,
			)}
		}
		token, err := s.d.Token()
		if err == nil {
			err = s.value(token, 2)
		}
		if err != nil {
			return true, err
		}
	}
	_, err = s.d.Token()
	return true, err
}

// value reads the rest of a value that begins with a token.
func (s *scanner) value(first json.Token, depth int) error {
	open, ok := first.(json.Delim)
	if !ok {
		return nil
	}
	if depth > maxDepth {
		return &wrong{code: invalidRequest, text: fmt.Sprintf(
			"arrays and objects of a message lie at most %d deep in each other", maxDepth,
		)}
	}
	names := map[string]bool{}
	for s.d.More() {
		if open == '{' {
			token, err := s.d.Token()
			if err != nil {
				return err
			}
			name := token.(string) // else the decoder has refused it
			if names[name] {
				return &wrong{code: invalidRequest, name: name, text: fmt.Sprintf(
					"the name %q occurs twice in an object of the message: which one counts is not clear", clip(name, 16),
				)}
			}
			names[name] = true
		}
		token, err := s.d.Token()
		if err == nil {
			err = s.value(token, depth+1)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.d.Token()
	return err
}
