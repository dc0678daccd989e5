//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
)

// TestLargeCommits writes documents of 1 MiB, which the journal keeps as pieces, beside small
// steps, until the server is killed in the middle of it. Acknowledged documents are there
// afterwards, none is there in part, and a reader of the journal sees each commit once.
func TestLargeCommits(t *testing.T) {
	t.Parallel()
	const writers, before = 3, 4
	r := newRig(t, "--snapshot-bytes", "5000000", "--segment-bytes", "2000000")

	content := func(writer, n int) []byte {
		text := fmt.Sprintf("writer %d, commit %d. ", writer, n)
		return bytes.Repeat([]byte(text), interlock.MaxDocumentBytes/len(text)+1)[:interlock.MaxDocumentBytes]
	}
	url := func(writer int) string { return fmt.Sprintf("http://%s/v1/state/doc:%d", r.server.HTTP, writer) }
	var acknowledged [writers]int
	enough, killed := make(chan struct{}, writers), make(chan struct{})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 1; ; n++ {
				req, err := http.NewRequest(http.MethodPut, url(w), bytes.NewReader(content(w, n)))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "text/plain")
				if n > 1 {
					req.Header.Set("If-Match", "*")
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					select {
					case <-killed:
					default:
						t.Error(err)
					}
					return
				}
				answer, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Errorf("commit %d: %d %s", n, res.StatusCode, answer)
					return
				}
				if acknowledged[w] = n; n == before {
					enough <- struct{}{}
				}
			}
		})
	}
	all.Go(func() { // small steps between
		for n := 0; ; n++ {
			body := fmt.Sprintf(`{"claims":[{"key":"small:%d"}]}`, n)
			res, err := http.Post("http://"+r.server.HTTP+"/v1/leases", "application/json", strings.NewReader(body))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	for range writers {
		<-enough
	}
	close(killed)
	r.server.Kill()
	all.Wait()

	r.restart()
	for w := range writers {
		res, err := http.Get(url(w))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		// The last one may have been carried out without an answer.
		if n := acknowledged[w]; err != nil || !bytes.Equal(body, content(w, n)) && !bytes.Equal(body, content(w, n+1)) {
			t.Errorf("writer %d: after commit %d was acknowledged, there are %d bytes %.40q, %v", w, n, len(body), body, err)
		}
	}

	if out := r.must("admin", "journal", "verify", r.dir); !strings.Contains(out, "nothing is wrong") {
		t.Error(out)
	}
	type written struct {
		Event string
		Index interlock.Index `json:",string"`
	}
	var commits []written
	for line := range strings.Lines(r.must("admin", "journal", "dump", r.dir, "-o", "json")) {
		var e written
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %.100q", err, line)
		}
		if e.Event == "written" {
			commits = append(commits, e)
		}
	}
	sum := 0
	for w := range writers {
		sum += acknowledged[w]
	}
	if n := len(commits); n < sum || n > sum+writers {
		t.Errorf("%d commits were acknowledged, the journal has %d", sum, n)
	}
	for i, e := range commits {
		if i > 0 && e.Index < commits[i-1].Index+2 {
			t.Errorf("a commit at %s and one at %s: each is two pieces", commits[i-1].Index, e.Index)
		}
	}
	if len(commits) > 0 {
		last := commits[len(commits)-1]
		if out := r.must("admin", "journal", "dump", r.dir, "-o", "json", "--from", last.Index.String()); strings.Contains(
			out, `"written"`,
		) {
			t.Errorf("begun behind its first piece, the dump has the commit at %s", last.Index)
		}
	}
}
