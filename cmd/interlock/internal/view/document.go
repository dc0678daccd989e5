package view

import (
	"encoding/base64"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// Body returns a document's bytes.
func Body(d *api.DocumentBody) ([]byte, error) {
	switch {
	case d.Text != nil:
		return []byte(*d.Text), nil
	case d.Base64 != nil:
		return base64.StdEncoding.DecodeString(*d.Base64)
	}
	return d.Value, nil
}

// Writer returns the name of a document's author.
func Writer(d *api.DocumentInfo) string {
	return cli.AgentName(api.Name{Agent: d.Agent, Session: d.Session, Flow: d.Flow})
}

// Size returns the size of a document in bytes, 0 where there is none.
func Size(d *api.DocumentInfo) int64 {
	if d.Size == nil {
		return 0
	}
	return int64(*d.Size)
}

// Ago returns when a document was written, for people.
func Ago(age *api.Milliseconds) string {
	if age == nil {
		age = new(api.Milliseconds)
	}
	return cli.ShortMillis(*age) + " ago"
}

// Written returns the author of a document and the purpose, in half a sentence.
func Written(d *api.DocumentInfo, age *api.Milliseconds) string {
	name := Writer(d)
	if d.Agent == "" && d.Session == "" && d.Principal != "" {
		name = cli.Clean(d.Principal)
	}
	text := "by " + name + " " + Ago(age)
	if d.Fence > 0 {
		text += " under fence " + d.Fence.String()
	}
	if note := cli.Clean(d.Note); note != "" {
		text += ": " + note
	}
	return text
}
