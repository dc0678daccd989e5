//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestStartsSurviveKill lets ten callers start runs at a cap of two while the server is
// killed. Each repeats its call under its own Idempotency-Key until it has an answer:
// two run, eight are refused, and later all ten have run, each once, never more than two
// at any index of the journal.
func TestStartsSurviveKill(t *testing.T) {
	r := newRig(t)
	r.must("pattern", "set", "runs", "org:{org}/runs", "--capacity", "2", "--ttl", "10m")
	s := &starters{t: t, url: "http://" + r.server.HTTP, runs: map[string]string{}}

	statuses := s.all(r, 10, 1, func(key string) int { return s.start(key, 0) })
	if statuses[200] != 2 || statuses[429] != 8 {
		t.Fatalf("the answers are %v, want 2 of 200 and 8 of 429", statuses)
	}
	for kills := range 3 {
		// A caller with a run finds it again and ends it; one without waits for one.
		s.all(r, 10, 3+2*kills, func(key string) int {
			status := s.start(key, 2000)
			if status == http.StatusOK {
				s.end(key)
			}
			return status
		})
	}
	for len(s.runs) < 10 {
		s.each(10, func(key string) int {
			status := s.start(key, 2000)
			if status == http.StatusOK {
				s.end(key)
			}
			return status
		})
	}
	s.check(r.must("log", "--from", "oldest", "-o", "json"))
}

// starters are callers that know their own keys, and nothing of each other.
type starters struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	runs    map[string]string // the runs, by the keys
	answers int
	enough  chan struct{} // closed when there are so many answers that it is time to kill
	limit   int
	back    chan struct{} // closed when the server is there again
}

// all has n callers call at once, and kills the server after so many answers.
func (s *starters) all(r *rig, n, answers int, call func(key string) int) map[int]int {
	s.t.Helper()
	s.answers, s.limit, s.enough, s.back = 0, answers, make(chan struct{}), make(chan struct{})
	statuses := make(chan map[int]int)
	go func() { statuses <- s.each(n, call) }()
	<-s.enough
	r.server.Kill()
	<-r.server.Ended()
	r.restart()
	close(s.back)
	return <-statuses
}

func (s *starters) each(n int, call func(key string) int) map[int]int {
	statuses := map[int]int{}
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			status := call(fmt.Sprintf("run-%d", i))
			s.mu.Lock()
			defer s.mu.Unlock()
			statuses[status]++
		})
	}
	callers.Wait()
	return statuses
}

// start starts the run of a key.
func (s *starters) start(key string, wait int) int {
	status, id := s.send("/v1/runs", key, fmt.Sprintf(`{"org":"acme","workflow":"triage","wait_ms":%d}`, wait))
	if status == http.StatusOK {
		s.mu.Lock()
		defer s.mu.Unlock()
		if known := s.runs[key]; known != "" && known != id {
			s.t.Errorf("%s has run as %s, and as %s", key, known, id)
		}
		s.runs[key] = id
	}
	return status
}

// end ends it.
func (s *starters) end(key string) {
	s.mu.Lock()
	id := s.runs[key]
	s.mu.Unlock()
	if status, _ := s.send("/v1/runs/"+id+"/end", key+"-end", `{}`); status != http.StatusOK && status != http.StatusGone {
		s.t.Errorf("the end of %s: status %d", key, status)
	}
}

// send repeats a call until it is answered, by a server that is killed meanwhile.
func (s *starters) send(path, key, body string) (status int, id string) {
	for {
		q, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
		if err != nil {
			s.t.Error(err)
			return 0, ""
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Idempotency-Key", key)
		var answer struct {
			Run struct {
				ID string `json:"id"`
			} `json:"run"`
		}
		res, err := http.DefaultClient.Do(q)
		if err == nil {
			err = json.NewDecoder(res.Body).Decode(&answer)
			res.Body.Close()
		}
		if err == nil && res.StatusCode != http.StatusServiceUnavailable {
			s.answered()
			return res.StatusCode, answer.Run.ID
		}
		<-s.back
	}
}

func (s *starters) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers++; s.answers == s.limit {
		close(s.enough)
	}
}

// check counts over the whole journal how many ran at once, and how often.
func (s *starters) check(events string) {
	s.t.Helper()
	alive, started := map[string]bool{}, 0
	for line := range bytes.Lines([]byte(events)) {
		var ev struct {
			Event   string `json:"event"`
			Index   string `json:"index"`
			Request string `json:"request"`
		}
		if err := json.Unmarshal(line, &ev); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		switch ev.Event {
		case "granted", "admitted":
			alive[ev.Request], started = true, started+1
		case "ended":
			delete(alive, ev.Request)
		}
		if len(alive) > 2 {
			s.t.Errorf("%d run at index %s", len(alive), ev.Index)
		}
	}
	if started != len(s.runs) {
		s.t.Errorf("%d runs were started for %d keys", started, len(s.runs))
	}
}
