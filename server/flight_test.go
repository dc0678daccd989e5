package server

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
)

// A tenant may have as many bytes in flight as are free, so another one always finds room.
func TestFlightIsShared(t *testing.T) {
	f := newFlight(1200)
	for _, step := range []struct {
		tenant interlock.Namespace
		n      int
		want   bool
	}{
		{"acme", 600, true},
		{"acme", 1, false},
		{"acme-2", 300, true},
		{"acme-2", 1, false},
		{"acme", 1, false},
		{"globex", 150, true},
		{"globex", 1, false},
	} {
		if got := f.take(step.tenant, step.n); got != step.want {
			t.Errorf("%s takes %d of %d free: %v", step.tenant, step.n, f.limit-f.used, got)
		}
	}
	if !f.isFull("acme") || f.isFull("initech") || f.streamRoom("acme") != leastStreamBytes {
		t.Errorf(
			"acme is full: %v, initech is full: %v, room of a stream: %d", f.isFull("acme"), f.isFull("initech"),
			f.streamRoom("acme"),
		)
	}
	f.count("acme", -600)
	f.count("acme-2", -300)
	f.count("globex", -150)
	if f.bytes() != 0 || len(f.of) != 0 {
		t.Errorf("nothing is in flight any more, and %d bytes of %v are", f.bytes(), f.of)
	}
	if any := newFlight(0); !any.take("acme", 1<<40) || any.isFull("acme") || any.streamRoom("acme") != maxBulk {
		t.Error("without a limit bytes are refused")
	}
}

// slowBody arrives whole but for its last byte, and ends when done is closed.
type slowBody struct {
	io.Reader
	done chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		<-b.done
		return copy(p, "}"), io.EOF
	}
	return n, err
}

// Bodies in flight are bounded for each tenant; what keeps leases alive gets through.
func TestBodiesInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t, func(cfg *Config) { cfg.MaxInFlight = 1300 << 10 })
		session, lease := d.session("a"), d.acquire("b", "k")
		padding := strings.Repeat(" ", 600<<10)
		held := &slowBody{strings.NewReader(`{"agent":"a","claims":[{"key":"x"}]` + padding), make(chan struct{})}
		slow := d.request("POST", "/v1/leases", "x")
		slow.Body, slow.ContentLength = io.NopCloser(held), int64(len(padding)+36)
		answer := d.start(slow)
		synctest.Wait()
		if n := d.server.flight.bytes(); n < 590<<10 {
			t.Fatalf("%d bytes are in flight", n)
		}
		large := `{"agent":"a","claims":[{"key":"y"}]` + padding[:300<<10] + `}`
		d.post("/v1/leases", large).want(503, "overloaded").says("detail", "in flight")
		d.post("/v1/sessions/"+session+"/heartbeat", `{}`).want(200)
		d.post("/v1/leases/"+lease+"/renew", `{}`).want(200)
		d.post("/v1/leases/"+lease+"/release", `{}`).want(200)
		d.post("/v1/leases", large, "Interlock-Namespace", "default-2").want(200)
		close(held.done)
		(<-answer).want(200)
		d.post("/v1/leases", large).want(200)
		// more than a half
		d.post("/v1/leases", `{"agent":"a","claims":[{"key":"z"}]`+padding+padding[:200<<10]+`}`).want(503, "overloaded")
		if n := d.server.flight.bytes(); n != 0 {
			t.Errorf("all calls are over, and %d bytes are in flight", n)
		}
	})
}

// Readers of events that never read keep no more than the free memory; a refused reader gets
// the error, and continues where it was.
func TestReadersThatNeverRead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t, func(cfg *Config) { cfg.MaxInFlight = 1 << 20 })
		d.loose = true
		dial := d.listen()
		for i := range 8 {
			d.commitDoc(string(rune('a'+i)), `"`+strings.Repeat("x", 100<<10)+`"`)
		}
		ask := "GET /v1/watch?values=true&from=1 HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n"
		for range 20 {
			paused := dial()
			if _, err := io.WriteString(paused, ask); err != nil {
				t.Fatal(err)
			}
			if _, err := http.ReadResponse(bufio.NewReader(paused), nil); err != nil { // the header, and no more
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := d.server.flight.bytes(); n < 100<<10 || n > 1<<20 {
			t.Errorf("%d bytes are in flight to readers that do not read", n)
		}
		late := dial()
		if _, err := io.WriteString(late, ask); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(late), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		if !contains(string(text), `"event":"end","code":"overloaded"`) {
			t.Errorf("one more reader hears %d bytes that end in %s", len(text), text[max(0, len(text)-300):])
		}
		pass(2 * writeTimeout)
		if n := d.server.flight.bytes(); n != 0 {
			t.Errorf("all readers were cut off, and %d bytes are in flight", n)
		}
		d.get("/v1/keys").want(200)
	})
}
