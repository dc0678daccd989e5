package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asZombie) != "" {
		zombie()
		return
	}
	launchtest.Main(m)
}

// site is the server as its clients see it, over all its restarts.
type site struct {
	t    *testing.T
	base string
	http *http.Client
	acks atomic.Int64
	goal atomic.Int64 // number of acknowledgements that closes reached
	// reached is closed by the acknowledgement that reaches the goal.
	reached chan struct{}
}

// connect points the clients to a server that has just started.
func (s *site) connect(address string) {
	s.base = "http://" + address
	s.http = &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		Timeout:   busy.Patience(),
	}
}

// after returns a channel that is closed after n more acknowledgements.
func (s *site) after(n int) <-chan struct{} {
	s.reached = make(chan struct{})
	s.goal.Store(s.acks.Load() + int64(n))
	return s.reached
}

// call is one request. With an id it may be repeated.
type call struct {
	method, path string
	id           string
	body         any
	fenceAbove   interlock.Fence // a grant that answers it has a higher fence
}

// answer is a decoded answer: the fields of all answers that the tests look at.
type answer struct {
	Status  int
	Code    interlock.Code `json:"code"`
	Detail  string         `json:"detail"`
	Outcome string         `json:"outcome"`
	Lease   struct {
		ID    string          `json:"id"`
		Fence interlock.Fence `json:"fence,string"`
		State string          `json:"state"`
	} `json:"lease"`
	Ticket struct {
		ID       string `json:"id"`
		Position int    `json:"position"`
		Length   int    `json:"length"`
	} `json:"ticket"`
	Session struct {
		ID string `json:"id"`
	} `json:"session"`
	Holders []struct {
		Fence    interlock.Fence `json:"fence,string"`
		Liveness string          `json:"liveness"`
	} `json:"holders"`
	Notes []struct {
		Fence interlock.Fence `json:"fence,string"`
		Text  string          `json:"text"`
	} `json:"notes"`
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s%s %s", a.Status, a.Outcome, a.Code, a.Detail)
}

// do sends a call. An error means that no whole answer came, so that the outcome is unknown.
func (s *site) do(ctx context.Context, c call) (a answer, err error) {
	var body io.Reader
	if c.body != nil {
		text, err := json.Marshal(c.body)
		if err != nil {
			return a, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, s.base+c.path, body)
	if err != nil {
		return a, err
	}
	if c.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.id != "" {
		req.Header.Set("Idempotency-Key", c.id)
	}
	res, err := s.http.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, err
	}
	a.Status = res.StatusCode
	switch a.Code {
	case interlock.CodeOutcomeUnknown, interlock.CodeShuttingDown, interlock.CodeNotOwner:
		// They say that the server is on its way out: the call is to be repeated with
		// the next one.
		return a, fmt.Errorf("%s", a)
	}
	if s.acks.Add(1) == s.goal.Load() {
		close(s.reached)
	}
	return a, nil
}
