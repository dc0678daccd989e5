package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/interlockdev/interlock/journal/memjournal"
)

const (
	linearClients  = 12
	linearCommands = 40 // of each client
	linearRestarts = 4
)

// Concurrent commits, additions and snapshot reads of clients, over real connections, some of
// which break, with a server that loses its journal now and then and is started again, are as
// if they had been carried out one after the other.
func TestCommitsAreLinearizable(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			front := &restartableServer{door: newDoor(t)}
			front.door.send(front.door.request("PUT", "/v1/patterns/k", `{"pattern":"{key}","write":"open"}`)).want(200)
			front.restarted.L = &front.mu
			site := httptest.NewServer(front)
			defer site.Close()
			run := &linearRun{
				url: site.URL, front: front, began: time.Now(), progress: make(chan struct{}, linearClients*linearCommands),
			}
			var clients sync.WaitGroup
			for i := range linearClients {
				clients.Go(func() { run.client(t, i, rand.New(rand.NewPCG(seed, uint64(i)))) })
			}
			for i := range linearRestarts {
				for range linearClients * linearCommands / (linearRestarts + 1) {
					<-run.progress
				}
				front.fail([]memjournal.Fault{memjournal.Stored, memjournal.Lost}[i%2])
			}
			clients.Wait()
			counts := map[string]int{}
			for _, op := range run.history {
				out := op.Output.(linearOutput)
				counts[out.code]++
				if out.unknown {
					counts["unknown"]++
				}
			}
			t.Logf("%d operations: %v", len(run.history), counts)
			for _, kind := range []string{"", committed, "stale", "out_of_bounds", "unknown"} {
				if counts[kind] == 0 {
					t.Errorf("nothing was tried that ended as %q", kind)
				}
			}
			if got := isLinearizable(run.history); got != porcupine.Ok {
				t.Errorf("the history is %s", got)
			}
		})
	}
}

// restartableServer hands requests to a server that is replaced when its journal fails.
type restartableServer struct {
	door *door

	mu        sync.Mutex
	restarted sync.Cond
	term      int
}

func (s *restartableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.door.handler
	s.mu.Unlock()
	handler.ServeHTTP(w, r)
}

// fail lets the next append fail, and starts the server again.
func (s *restartableServer) fail(fault memjournal.Fault) {
	s.door.store.Inject(fault)
	<-s.door.shard.Failed()
	_ = s.door.shard.Close(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.door.open()
	s.term++
	s.restarted.Broadcast()
}

func (s *restartableServer) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term
}

// after returns when a later term than this one has begun.
func (s *restartableServer) after(term int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.term == term {
		s.restarted.Wait()
	}
}

// linearRun records what clients do.
type linearRun struct {
	url      string
	front    *restartableServer
	began    time.Time
	progress chan struct{}

	mu      sync.Mutex
	history []porcupine.Operation
}

func (r *linearRun) client(t *testing.T, number int, random *rand.Rand) {
	var seen linearState
	for i := range linearCommands {
		var in linearInput
		if i > 0 && random.IntN(3) > 0 {
			in = randomCommit(random, seen, number*1000+i+1)
		}
		op := porcupine.Operation{ClientId: number, Input: in, Call: int64(time.Since(r.began)), Return: math.MaxInt64}
		out, err := r.ask(t.Context(), in, fmt.Sprint(number, "-", i), random)
		if err != nil {
			t.Error(err)
			out.unknown = true
		}
		if op.Output = out; !out.unknown {
			op.Return = int64(time.Since(r.began))
		}
		if !in.commit && !out.unknown {
			seen = out.state
		}
		if in.commit || !out.unknown {
			r.mu.Lock()
			r.history = append(r.history, op)
			r.mu.Unlock()
		}
		r.progress <- struct{}{}
	}
}

// randomCommit builds on what a client has seen.
func randomCommit(random *rand.Rand, seen linearState, value int) linearInput {
	in := linearInput{commit: true}
	for k := range in.reads {
		in.reads[k] = notRead
		if random.IntN(3) == 0 {
			in.reads[k] = seen.docs[k].version
		}
		switch {
		case k == counterKey || random.IntN(2) == 0:
		case random.IntN(4) == 0:
			in.puts[k] = absent
		default:
			in.puts[k] = value
		}
	}
	if in.puts == [linearKeys]int{} || random.IntN(3) == 0 {
		in.add = random.IntN(15) - 7
		if in.add >= 0 {
			in.add++
		}
	}
	return in
}

// ask sends one command. Some connections break when the request was sent; then half of the commits
// are repeated under the same id until there is an answer, and the others stay unknown. So does one
// with a refused repetition: refusals are not remembered, and the first request may still be on its
// way.
func (r *linearRun) ask(ctx context.Context, in linearInput, id string, random *rand.Rand) (linearOutput, error) {
	breaks, repeats := random.IntN(16) == 0, random.IntN(2) == 0
	for sent := false; ; sent = true {
		term := r.front.now()
		answer, err := r.send(ctx, in, id, breaks)
		breaks = false
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			return linearOutput{}, err
		case answer.Code == "outcome_unknown":
			r.front.after(term)
		case answer.Status == http.StatusServiceUnavailable:
			r.front.after(term)
			continue // it was not carried out
		case sent && answer.Code != "":
			return linearOutput{unknown: true}, nil
		default:
			return answer.output(in)
		}
		if !repeats {
			return linearOutput{unknown: true}, nil
		}
	}
}

// linearAnswer is the relevant part of an answer.
type linearAnswer struct {
	Status    int    // of a refusal
	Code      string // of a refusal
	Outcome   string
	Detail    string
	Version   string
	AsOf      string `json:"as_of"`
	Documents []struct {
		Version string
		Absent  bool
		Value   *int
	}
}

func (a *linearAnswer) output(in linearInput) (out linearOutput, err error) {
	number := func(text string) int {
		n, failed := strconv.Atoi(text)
		err = errors.Join(err, failed)
		return n
	}
	switch {
	case a.Code != "":
		out.code = a.Code
		if a.Code != "stale" && a.Code != "out_of_bounds" {
			err = fmt.Errorf("%s: %s", a.Code, a.Detail)
		}
		return out, err
	case in.commit:
		out.code, out.version = a.Outcome, number(a.Version)
		for _, d := range a.Documents {
			if d.Value != nil {
				out.sum = *d.Value
			}
		}
		return out, err
	}
	out.state = noDocs()
	out.state.version = number(a.AsOf)
	for k, d := range a.Documents {
		out.state.docs[k].version = number(d.Version)
		if !d.Absent {
			out.state.docs[k].value = *d.Value
		}
	}
	return out, err
}

// send sends a request. If it breaks, the answer is not read.
func (r *linearRun) send(ctx context.Context, in linearInput, id string, breaks bool) (*linearAnswer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if breaks {
		ctx = httptrace.WithClientTrace(
			ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }},
		)
	}
	method, url, body := http.MethodGet, r.url+"/v1/state?values=true", []byte(nil)
	for k := range linearKeys {
		url += fmt.Sprint("&key=k", k)
	}
	if in.commit {
		method, url, body = http.MethodPost, r.url+"/v1/commits", in.body()
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if in.commit {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", id)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	answer := new(linearAnswer)
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	return answer, nil
}

// body is a commit as JSON.
func (in linearInput) body() []byte {
	reads, writes := []any{}, []any{}
	for k := range linearKeys {
		key := fmt.Sprint("k", k)
		if in.reads[k] != notRead {
			reads = append(reads, map[string]any{"key": key, "version": strconv.Itoa(in.reads[k])})
		}
		switch in.puts[k] {
		case 0:
		case absent:
			writes = append(writes, map[string]any{"key": key, "delete": true})
		default:
			writes = append(writes, map[string]any{"key": key, "put": in.puts[k]})
		}
	}
	if in.add != 0 {
		writes = append(
			writes, map[string]any{"key": fmt.Sprint("k", counterKey), "add": in.add, "min": 0, "max": counterMax},
		)
	}
	body, _ := json.Marshal(map[string]any{"reads": reads, "writes": writes}) // of numbers and strings
	return body
}
