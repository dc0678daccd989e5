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
	// Margin is how long a server may take beyond the wait that it was asked for.
	Margin = 2 * time.Second
)

// Settings are those of one event.
type Settings struct {
	Harness             string
	Mode, Hold, Prompts string
	Wait                time.Duration
	Also                []string // TOOL:FIELD
}

// Path is the path of the request.
func (s *Settings) Path() string { return "/v1/hooks/" + url.PathEscape(s.Harness) }

// Query is the query of the request.
func (s *Settings) Query() url.Values {
	query := url.Values{"wait_s": {strconv.Itoa(int(s.Wait.Seconds()))}}
	if s.Mode != "" {
		query.Set("mode", s.Mode)
	}
	if s.Hold != "" {
		query.Set("hold", s.Hold)
	}
	if s.Prompts != "" {
		query.Set("prompts", s.Prompts)
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
