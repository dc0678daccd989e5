package hookclient

import (
	"net/url"
	"strconv"
	"time"
)

const (
	// MaxEvent is the limit of the server on the bytes of an event.
	MaxEvent = 1 << 20
	// DefaultWait is how long an event may wait for a file.
	DefaultWait = 30 * time.Second
	// MaxWait is the limit of the server on it.
	MaxWait = 50 * time.Second
	// MaxFiles is how many files an event leases at most: each has a claim on its copy, and one on its repository.
	MaxFiles = 32
	// Margin is how long a server may take beyond the wait that it was asked for.
	Margin = 2 * time.Second
	// Short is how long an event may take that waits for no file: a harness ends it after 5 s, and at the end of a session
	// less.
	Short = 2500 * time.Millisecond
)

// Settings are those of one event.
type Settings struct {
	Harness             string
	Mode, Hold, Prompts string
	Unknown, Commits    string
	Regions             string
	Files               string // a number
	Wait                time.Duration
	Also                []string // TOOL:FIELD
}

// words are the parameters that are one word, by their names; empty ones are left to the server.
func (s *Settings) words() [7]Header {
	return [...]Header{
		{"mode", s.Mode},
		{"hold", s.Hold},
		{"prompts", s.Prompts},
		{"unknown", s.Unknown},
		{"commits", s.Commits},
		{"regions", s.Regions},
		{"files", s.Files},
	}
}

// Path is the path of the request.
func (s *Settings) Path() string { return "/v1/hooks/" + url.PathEscape(s.Harness) }

// Query is the query of the request.
func (s *Settings) Query() url.Values {
	query := url.Values{"wait_s": {strconv.Itoa(int(s.Wait.Seconds()))}}
	for _, word := range s.words() {
		if word.Value != "" {
			query.Set(word.Name, word.Value)
		}
	}
	for _, pair := range s.Also {
		query.Add("also", pair)
	}
	return query
}

// SkipPath is where a person allows one edit of a file that another agent holds.
const SkipPath = "/v1/hooks/skip"

// Skip is the body of such a request. Path is absolute, or begins at Dir.
type Skip struct {
	Path   string `json:"path"`
	Dir    string `json:"cwd"`
	Reason string `json:"reason"`
}

// Skipped is its answer, with the file as agents know it.
type Skipped struct {
	Key       string `json:"key"`
	File      string `json:"file"`
	ExpiresIn int64  `json:"expires_in_ms"`
}
