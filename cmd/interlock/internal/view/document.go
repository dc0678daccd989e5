package view

import (
	"encoding/base64"
	"encoding/json"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// Document is guarded state in the form of the HTTP API.
type Document struct {
	Key     interlock.Key     `json:"key"`
	Version interlock.Version `json:"version,string"`
	Absent  bool              `json:"absent"`
	Type    string            `json:"content_type"`
	Size    int64             `json:"size"`
	Value   json.RawMessage   `json:"value"`
	Text    *string           `json:"text"`
	Base64  *string           `json:"base64"`
	cli.Party
	Principal string          `json:"principal"`
	Fence     interlock.Fence `json:"fence,string"`
	Note      string          `json:"note"`
	Age       int64           `json:"age_ms"`
	Op        string          `json:"op"`

	Truncated bool       `json:"truncated"`
	Earlier   []Document `json:"earlier"`
}

// Body returns the document's bytes.
func (d *Document) Body() ([]byte, error) {
	switch {
	case d.Text != nil:
		return []byte(*d.Text), nil
	case d.Base64 != nil:
		return base64.StdEncoding.DecodeString(*d.Base64)
	}
	return d.Value, nil
}

// Writer returns the author and the purpose, in half a sentence.
func (d *Document) Writer() string {
	name := d.Name()
	if d.Agent == "" && d.Session == "" && d.Principal != "" {
		name = cli.Clean(d.Principal)
	}
	text := "by " + name + " " + cli.Short(cli.Millis(d.Age)) + " ago"
	if d.Fence > 0 {
		text += " under fence " + d.Fence.String()
	}
	if note := cli.Clean(d.Note); note != "" {
		text += ": " + note
	}
	return text
}

// Documents is a list of documents at one version of the namespace.
type Documents struct {
	Documents []Document        `json:"documents"`
	AsOf      interlock.Version `json:"as_of,string"`
	Cursor    string            `json:"cursor"`
}
