package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The crowd: keys that are held, most of them by leases of many claims, lines of 1,000 waiters at ten of them, and
// tasks. Every page must cut or virtualise its lists.
const (
	crowdKeys    = 100_000
	crowdWaiters = 10_000
	crowdLines   = 10
	crowdTasks   = 3_000
	claimsALease = 64
	crowdWidth   = 16    // calls at a time
	mostNodes    = 4_000 // elements of a page, whatever is in the server
)

// crowd fills the server.
func (s *rig) crowd() {
	s.Helper()
	began := time.Now()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowdWidth}}
	post := func(path string, body object) {
		text, err := json.Marshal(body)
		if err != nil {
			s.Error(err)
			return
		}
		r, err := http.NewRequest("POST", s.base+path, bytes.NewReader(text))
		if err != nil {
			s.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+operator)
		got, err := client.Do(r)
		if err != nil {
			s.Error(err)
			return
		}
		defer got.Body.Close()
		if got.StatusCode >= 300 {
			var problem object
			_ = json.NewDecoder(got.Body).Decode(&problem)
			s.Errorf("%s %s: %d %v", path, text, got.StatusCode, problem["detail"])
		}
	}
	all := func(n int, do func(i int)) {
		var work sync.WaitGroup
		next := make(chan int)
		for range crowdWidth {
			work.Go(func() {
				for i := range next {
					do(i)
				}
			})
		}
		for i := range n {
			if s.Failed() {
				break
			}
			next <- i
		}
		close(next)
		work.Wait()
		if s.Failed() {
			s.FailNow()
		}
	}
	sessions := make([]string, 600)
	for i := range sessions {
		sessions[i] = s.session(operator, fmt.Sprintf("agent-%03d", i))
	}
	lease := func(i int, flow string, claims []object, purpose string) {
		post("/v1/leases", object{
			"session": sessions[i%len(sessions)], "flow": flow, "claims": claims, "purpose": purpose, "ttl_ms": 600_000,
			"max_wait_ms": 600_000, "on_conflict": "wait",
		})
	}
	exclusive := func(key string) object { return object{"key": key, "mode": "exclusive"} }
	all(crowdLines, func(i int) {
		lease(i, "main", []object{exclusive(fmt.Sprintf("hot:%d", i))}, "holds a line up")
	})
	all((crowdKeys-crowdLines)/claimsALease+1, func(i int) {
		var claims []object
		for k := i * claimsALease; k < min((i+1)*claimsALease, crowdKeys-crowdLines); k++ {
			claims = append(claims, exclusive(fmt.Sprintf("file:%05d", k)))
		}
		lease(i, "main", claims, "a large change")
	})
	s.call(operator, "PUT", "/v1/queues/crowd", object{"max_attempts": 1})
	all(crowdTasks, func(i int) {
		post("/v1/tasks", object{"queue": "crowd", "agent": "planner", "purpose": fmt.Sprint("task ", i)})
	})
	all(crowdWaiters, func(i int) {
		key := fmt.Sprintf("hot:%d", i%crowdLines)
		lease(i, fmt.Sprint("flow-", i/len(sessions)), []object{exclusive(key)}, "waits in a long line")
	})
	s.Logf("%d keys, %d waiters and %d tasks came in %v", crowdKeys, crowdWaiters, crowdTasks, time.Since(began))
}

// TestCrowd opens every page beside 100,000 keys and 10,000 waiters. Times are logged, and bounded only against hanging
// ones.
func TestCrowd(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.crowd()
	b := s.browse(t)
	b.logIn(operator)
	for _, p := range []struct{ name, view, shows, rest string }{
		{"now", "", "10000 waiters, most at hot:", "more keys"},
		{"keys", "keys", "file:00000", "200 keys, and more."},
		{"key", "keys/hot%3A3", "is held by agent-", "more waiters"},
		{"waits", "waits", "Root blockers", "10,000 waiters, the "},
		{"agents", "agents", "agent-000", "500 sessions, and more"},
		{"work", "work", "task 1", "200 tasks, and more"},
		{"journal", "journal", "waits in a long line", "events"},
		{"past", "waits?at=2000", "You look at the state after entry", ""},
		{"admin", "admin", "Newest entry", ""},
	} {
		b.open(p.view)
		b.shows(p.shows)
		seen := b.figure(`performance.now()`)
		if p.rest != "" {
			b.shows(p.rest)
		}
		b.until(`!document.querySelector('[aria-busy]')`, "all of "+p.name)
		nodes := b.figure(`document.querySelectorAll('*').length`)
		t.Logf("%-8s first view after %4.0f ms, %4.0f elements", p.name, seen, nodes)
		if nodes > mostNodes {
			t.Errorf("%s has %.0f elements, at most %d", p.name, nodes, mostNodes)
		}
		if slow := b.figure(longest); slow > 0 {
			t.Logf("%-8s the longest task of its scripts took %.0f ms", p.name, slow)
		}
	}
	b.open("keys")
	b.shows("200 keys, and more.")
	if high := b.figure(`document.querySelector('.virtual').scrollHeight`); high < 200*32 {
		t.Errorf("200 rows are %.0f pixels high, so they cannot be scrolled through", high)
	}
	b.until(`(() => {
		document.querySelector('.virtual').scrollTo(0, 1e9);
		return document.body.innerText.includes('600 keys, and more.');
	})()`, "more keys by scrolling")
	if nodes := b.figure(`document.querySelectorAll('*').length`); nodes > mostNodes {
		t.Errorf("after scrolling the keys there are %.0f elements, at most %d", nodes, mostNodes)
	}
	b.calm("a crowd")
}

// longest is the duration of the longest task that kept the page from answering.
const longest = `new Promise((done) => {
	let most = 0;
	new PerformanceObserver((list) => {
		for (const e of list.getEntries()) most = Math.max(most, e.duration);
	}).observe({type: 'longtask', buffered: true});
	setTimeout(() => done(most), 100);
})`

// figure evaluates an expression, or a promise, that is a number.
func (b *browser) figure(expression string) (n float64) {
	b.Helper()
	b.run(expression, chromedp.Evaluate(expression, &n, await))
	return n
}
