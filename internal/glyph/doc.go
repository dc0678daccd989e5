// Package glyph knows which characters a reader sees. Text that others wrote is shown
// to agents and people, and names files: whole sentences can be hidden in it.
//
// It must never count a character as seen that most fonts show nothing for.
//
// Start reading at glyph.go.
package glyph
