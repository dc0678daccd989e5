package server

import "github.com/interlockdev/interlock/internal/invisible"

// cleanText returns one line of an agent's text, safe to show: a purpose, a progress, a
// reason, a name. HTTP and the session stream pass every such text through here on its way
// out.
func cleanText(s string) string { return invisible.Line(s) }

// cleanNote returns an agent's text that may have lines.
func cleanNote(s string) string { return invisible.Lines(s) }
