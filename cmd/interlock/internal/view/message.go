package view

import (
	"encoding/json"
	"net/url"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// MailboxPath returns the path of a key's mailbox.
func MailboxPath(key string) string { return cli.ResourcePath("mailbox", key) }

// LogEntry is one entry in the log of a key.
type LogEntry struct {
	Seq      uint64          `json:"seq,string"`
	Message  string          `json:"message"`
	Kind     string          `json:"kind"`
	Body     json.RawMessage `json:"body"`
	Sender   string          `json:"sender"`
	Agent    string          `json:"agent"`
	State    string          `json:"state"`
	Reply    json.RawMessage `json:"reply"`
	Reason   string          `json:"reason"`
	Worker   string          `json:"worker"`
	Session  string          `json:"session"`
	Attempt  int             `json:"attempt"`
	Fence    interlock.Fence `json:"fence,string"`
	Document *Document       `json:"document"`
	Changed  bool            `json:"changed"`
	Age      int64           `json:"age_ms"`
}

// WriterPath returns the path of the writer of a key pattern.
func WriterPath(pattern string) string { return "/v1/writers/" + url.PathEscape(pattern) }
