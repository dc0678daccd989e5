//go:build unix

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// delivery is a request of a webhook. The test chooses its answer.
type delivery struct {
	header http.Header
	body   []byte
	answer chan<- int // a status
	gone   <-chan struct{}
}

// receiver is an HTTP server that hands each request to the test.
func receiver(t *testing.T) (url string, deliveries <-chan delivery) {
	t.Helper()
	got := make(chan delivery)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return // the server was killed meanwhile
		}
		answer := make(chan int, 1)
		select {
		case got <- delivery{q.Header, body, answer, q.Context().Done()}:
		case <-q.Context().Done():
			return
		}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// nextDelivery waits for the next request and checks its signature as docs/webhooks.md describes it.
func nextDelivery(t *testing.T, deliveries <-chan delivery, secret string) (d delivery, id string) {
	t.Helper()
	select {
	case d = <-deliveries:
	case <-time.After(busy.Patience()):
		t.Fatal("no request of the webhook")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	id, at := d.header.Get("Webhook-Id"), d.header.Get("Webhook-Timestamp")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "." + string(d.body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !slices.Contains(strings.Fields(d.header.Get("Webhook-Signature")), want) {
		t.Errorf("the signature is %q, want %q", d.header.Get("Webhook-Signature"), want)
	}
	if sent, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(sent, 0)).Abs() > busy.Patience() {
		t.Errorf("the timestamp is %q", at)
	}
	return d, id
}

// A receiver fails, hangs and answers again, and the server is killed at each of these moments: no
// event is lost, they come in order, and a message that is repeated has the same id and the same
// text.
func TestWebhookOutlivesKills(t *testing.T) {
	url, deliveries := receiver(t)
	allowed := []string{"--webhook-allow", "127.0.0.0/8"}
	r := newRig(t, allowed...)
	restart := func() {
		t.Helper()
		r.server.Kill()
		r.server = launchtest.Start(t, launch.Config{
			DataDir: r.dir, Args: append(allowed, "--http", r.server.HTTP, "--grpc", r.server.GRPC),
		})
	}
	var set struct{ Secret string }
	out := r.must("webhook", "set", "hook", url, "--events", "lease_revoked", "--key", "account:{id}", "-o", "json")
	if err := json.Unmarshal([]byte(out), &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"account:1", "other:1", "account:2"} {
		r.must("lock", key, "--agent", "billing-7")
		r.must("lease", "revoke", key, "-y", "--reason", "stuck")
	}

	failed, id := nextDelivery(t, deliveries, set.Secret)
	failed.answer <- http.StatusInternalServerError
	restart()
	hung, again := nextDelivery(t, deliveries, set.Secret)
	restart() // which ends the request
	<-hung.gone
	taken, third := nextDelivery(t, deliveries, set.Secret)
	if again != id || third != id || string(taken.body) != string(failed.body) || string(hung.body) != string(failed.body) {
		t.Errorf("%s %s\n%s %s\n%s %s", id, failed.body, again, hung.body, third, taken.body)
	}
	var message struct {
		Type string
		Data struct {
			Event struct{ Claims []struct{ Key string } }
		}
	}
	keyOf := func(d delivery) string {
		if err := json.Unmarshal(d.body, &message); err != nil || message.Type != "lease_revoked" ||
			len(message.Data.Event.Claims) != 1 {
			t.Fatalf("%v in %s", err, d.body)
		}
		return message.Data.Event.Claims[0].Key
	}
	if key := keyOf(taken); key != "account:1" {
		t.Errorf("the first message is about %s", key)
	}
	taken.answer <- http.StatusOK

	// The other key is none of the webhook's. The first message may be repeated after a kill, and
	// then it has its id.
	second, other := nextDelivery(t, deliveries, set.Secret)
	if key := keyOf(second); key != "account:2" || other == id {
		t.Errorf("the second message is %s about %s", other, key)
	}
	restart()
	for {
		last, repeated := nextDelivery(t, deliveries, set.Secret)
		last.answer <- http.StatusNoContent
		if repeated == other {
			break
		}
		if repeated != id {
			t.Fatalf("a third message %s: %s", repeated, last.body)
		}
	}
	if out := r.must("webhook", "get", "hook"); !strings.Contains(out, "delivered") {
		t.Errorf("it shows\n%s", out)
	}
}
