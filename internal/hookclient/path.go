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
	// Margin is how long a server may take beyond the wait that it was asked for.
	Margin = 2 * time.Second
)

// Settings are those of one event.
type Settings struct {
	Harness    string
	Mode, Hold string
	Wait       time.Duration
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
	return query
}
