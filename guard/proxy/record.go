package proxy

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// Record is one line about a caller and its action. Neither a lease's id nor a query nor any
// other header is in it.
type Record struct {
	Time     time.Time       `json:"time"` // when the call came
	Agent    string          `json:"agent,omitempty"`
	Session  string          `json:"session,omitempty"` // public name
	Key      interlock.Key   `json:"key,omitempty"`
	Fence    interlock.Fence `json:"fence,omitempty,string"`
	Method   string          `json:"method"`
	Path     string          `json:"path"`
	Status   int             `json:"status"` // 0: the caller had left before an answer
	Duration int64           `json:"duration_ms"`
	// Code is why the proxy refused or could not finish the call; "" where the status
	// is the API's.
	Code interlock.Code `json:"code,omitempty"`
}

// maxRecorded bounds the length of one text of a caller in a record.
const maxRecorded = 2048

// recorder writes records, one a line.
type recorder struct {
	mu     sync.Mutex // held while a record is written
	to     io.Writer
	failed func(error)
}

func (r *recorder) write(record *Record) {
	record.Method, record.Path, record.Key = clip(
		record.Method,
	), clip(record.Path), interlock.Key(clip(string(record.Key)))
	line, _ := json.Marshal(record) // it cannot fail
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.to.Write(append(line, '\n')); err != nil {
		r.failed(err)
	}
}

func clip(s string) string {
	if len(s) > maxRecorded {
		return s[:maxRecorded] + "..."
	}
	return s
}
