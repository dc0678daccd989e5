package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/shard"
)

// receiver is a receiver of messages with answers that a test chooses.
type receiver struct {
	mu     sync.Mutex
	got    []got
	answer func(n int) *http.Response // to the request with number n, from 1 on
}

// got is one request.
type got struct {
	host, id, typ string
	at            time.Time
	body          []byte
	header        http.Header
}

func status(code int, header ...string) *http.Response {
	r := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("answer"))}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// answers changes the answers to later requests.
func (r *receiver) answers(answer func(n int) *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var b struct{ Type string }
	_ = json.Unmarshal(body, &b)
	r.mu.Lock()
	r.got = append(r.got, got{req.URL.Host, req.Header.Get("webhook-id"), b.Type, time.Now(), body, req.Header})
	n, answers := len(r.got), r.answer
	r.mu.Unlock()
	answer := answers(n)
	if answer == nil { // it hangs
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return answer, nil
}

// list returns what a host received.
func (r *receiver) list(host string) (list []got) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.got {
		if g.host == host {
			list = append(list, g)
		}
	}
	return list
}

func ids(list []got) (ids []string) {
	for _, g := range list {
		ids = append(ids, g.id)
	}
	return ids
}

// rig is a shard with a sender.
type rig struct {
	*testing.T
	receiver *receiver
	config   shard.Config // without journal and observer
	store    *memjournal.Store
	shard    *shard.Shard
	sender   *Sender
	stop     func()
}

type observer struct{ rig *rig }

func (o observer) Committed(events []record.Event) {
	for i := range events {
		if o.rig.sender != nil {
			o.rig.sender.Committed(&events[i])
		}
	}
}
func (observer) Appended(time.Duration, int, int) {}
func (observer) Lag(time.Duration)                {}
func (observer) Saved(time.Duration)              {}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, receiver: &receiver{answer: func(int) *http.Response { return status(204) }}}
	r.store = new(memjournal.Store)
	r.open()
	return r
}

// open begins a term.
func (r *rig) open() {
	r.sender = nil
	j, err := r.store.Open(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	r.config.Journal, r.config.Observer = j, observer{r}
	r.shard, err = shard.Open(r.Context(), r.config)
	if err != nil {
		r.Fatal(err)
	}
	targets, _ := ParseTargets(nil)
	r.sender = New(Config{
		Shard: r.shard, Targets: targets, PublicURL: "https://interlock.example",
		Event: func(ev *record.Event, index interlock.Index, _ interlock.Epoch) json.RawMessage {
			return fmt.Appendf(nil, `{"event":%q,"index":"%d"}`, ev.Kind, index)
		},
		Transport: r.receiver,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.sender.Run(ctx) }()
	r.stop = func() { cancel(); <-done }
}

func (r *rig) close() {
	r.stop()
	if err := r.shard.Close(context.Background()); err != nil {
		r.Error(err)
	}
}

func (r *rig) do(cmd engine.Command) engine.Effect {
	r.Helper()
	cmd.Header().Namespace = "acme"
	eff, _, err := r.shard.Do(context.Background(), cmd)
	if err != nil || eff.Outcome == engine.Refused {
		r.Fatalf("%T: %v, %+v", cmd, err, eff)
	}
	return eff
}

// hook sets a webhook for changes of queues, which change makes.
func (r *rig) hook(name string, change ...func(*interlock.Webhook)) {
	r.Helper()
	w := interlock.Webhook{Name: name, URL: "https://" + name + ".example/x", Events: []string{"queue_changed"}}
	for _, f := range change {
		f(&w)
	}
	key := bytes.Repeat([]byte(name[:1]), record.WebhookKeyBytes)
	r.do(&engine.SetWebhook{Webhook: w, ID: name, Secret: key, LinkKey: key, Cursor: r.shard.At().Index})
}

// view returns a webhook as the engine has it.
func (r *rig) view(name string) (w engine.WebhookView) {
	r.Helper()
	if _, err := r.shard.Read(r.Context(), "acme", func(e *engine.Engine, _ engine.Time) {
		w, _ = e.Webhook("acme", name)
	}); err != nil {
		r.Fatal(err)
	}
	return w
}

func (r *rig) change(names ...string) {
	r.Helper()
	for _, name := range names {
		r.do(&engine.SetQueue{Queue: interlock.TaskQueue{Name: name}})
	}
}

// verify checks a message by the specification of Standard Webhooks.
func verify(secret string, g got) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return fmt.Errorf("the secret %q has no 24 to 64 bytes", secret)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", g.header.Get("webhook-id"), g.header.Get("webhook-timestamp"), g.body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !slices.Contains(strings.Fields(g.header.Get("webhook-signature")), want) {
		return fmt.Errorf("no signature is %s: %s", want, g.header.Get("webhook-signature"))
	}
	if fmt.Sprint(g.at.Unix()) != g.header.Get("webhook-timestamp") {
		return fmt.Errorf("the timestamp is %s", g.header.Get("webhook-timestamp"))
	}
	return nil
}

// TestMessages: each event is one message, in order, signed; after a rotation both secrets sign.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.hook("ops")
		r.change("a", "b", "c")
		synctest.Wait()
		list := r.receiver.list("ops.example")
		if len(list) != 3 || len(slices.Compact(slices.Sorted(slices.Values(ids(list))))) != 3 {
			t.Fatalf("received %v", ids(list))
		}
		old := r.view("ops")
		for i, g := range list {
			if err := verify(Secret(&old), g); err != nil {
				t.Error(err)
			}
			var b Body
			if err := json.Unmarshal(g.body, &b); err != nil || b.Type != "queue_changed" || b.Data.Namespace != "acme" ||
				!strings.Contains(b.Data.Text, string("abc"[i])) {
				t.Errorf("message %d is %s, %v", i, g.body, err)
			}
		}
		key := bytes.Repeat([]byte("n"), record.WebhookKeyBytes)
		r.do(&engine.RotateWebhook{Name: "ops", Secret: key, LinkKey: key})
		synctest.Wait() // a message on its way while the secret changes has the former signature alone
		r.change("d")
		synctest.Wait()
		fresh := r.view("ops")
		list = r.receiver.list("ops.example")
		for _, w := range []engine.WebhookView{old, fresh} {
			if err := verify(Secret(&w), list[3]); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(interlock.WebhookSecretTime)
		r.change("e")
		synctest.Wait()
		list = r.receiver.list("ops.example")
		if verify(Secret(&old), list[4]) == nil || verify(Secret(&fresh), list[4]) != nil {
			t.Error("a day after the rotation the former secret still signs")
		}
		before := r.shard.At().Index
		time.Sleep(time.Hour)
		if at := r.shard.At().Index; at != before {
			t.Errorf("an idle hour wrote entries %d to %d", before+1, at)
		}
	})
}

// TestRetries: a message is tried at growing intervals, in its order, and no receiver delays another.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.hook("bad")
		r.hook("slow")
		r.hook("good")
		down := true
		r.receiver.answers(func(n int) *http.Response {
			r.receiver.mu.Lock()
			defer r.receiver.mu.Unlock()
			switch host := r.receiver.got[n-1].host; {
			case host == "bad.example" && down:
				return status(500)
			case host == "slow.example" && down:
				return nil
			}
			return status(200)
		})
		r.change("a", "b")
		synctest.Wait()
		if n := len(r.receiver.list("good.example")); n != 2 {
			t.Errorf("the good receiver got %d messages", n)
		}
		time.Sleep(90 * time.Minute)
		list := r.receiver.list("bad.example")
		at := list[0].at
		for i, want := range append([]time.Duration{0}, pauses...) {
			if i == len(list) {
				break
			}
			if d := list[i].at.Sub(at); d < want || d > want+want/4 {
				t.Errorf("attempt %d came after %v, want about %v", i, d, want)
			}
			if at = list[i].at; list[i].id != list[0].id {
				t.Errorf("attempt %d has id %s, want %s", i, list[i].id, list[0].id)
			}
		}
		if n := len(list); n != 6 {
			t.Errorf("there were %d attempts", n)
		}
		if st := r.sender.Status("acme", "bad"); st.Failures != 6 || st.Answer.Status != 500 || st.Next.IsZero() {
			t.Errorf("the status is %+v", st)
		}
		if n, oldest := r.sender.Backlog(); n != 2 || oldest < 90*time.Minute {
			t.Errorf("the backlog is %d, %v", n, oldest)
		}
		r.receiver.mu.Lock()
		down = false
		r.receiver.mu.Unlock()
		time.Sleep(2 * time.Hour)
		for _, host := range []string{"bad.example", "slow.example"} {
			list := r.receiver.list(host)
			if last := ids(list[len(list)-2:]); last[0] != list[0].id || last[1] == list[0].id {
				t.Errorf("%s received %v", host, ids(list))
			}
		}
		if n, _ := r.sender.Backlog(); n != 0 {
			t.Errorf("the backlog is %d", n)
		}
	})
}

// TestGivenUp: after three days a message is given up, counted, and the next one goes on.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.hook("ops")
		r.receiver.answers(func(int) *http.Response { return status(503, "Retry-After", "1800") })
		r.change("a")
		synctest.Wait()
		time.Sleep(20 * time.Minute)
		if n := len(r.receiver.list("ops.example")); n != 1 {
			t.Errorf("%d attempts before the Retry-After has passed", n)
		}
		time.Sleep(tryFor)
		r.change("b")
		time.Sleep(3 * time.Hour)
		first := r.receiver.list("ops.example")[0].id
		r.receiver.answers(func(int) *http.Response { return status(200) })
		time.Sleep(2 * time.Hour)
		list := r.receiver.list("ops.example")
		if last := list[len(list)-1]; last.id == first {
			t.Error("the first message is still tried")
		}
		var w engine.WebhookView
		_, _ = r.shard.Read(context.Background(), "acme", func(e *engine.Engine, _ engine.Time) {
			w, _ = e.Webhook("acme", "ops")
		})
		if w.GivenUp != 1 || w.Delivered != 1 {
			t.Errorf("given up %d, delivered %d", w.GivenUp, w.Delivered)
		}
	})
}

// TestGone: 410 pauses the webhook, and setting it again delivers what has waited.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.hook("ops")
		r.receiver.answers(func(int) *http.Response { return status(410) })
		r.change("a", "b")
		time.Sleep(24 * time.Hour)
		if n := len(r.receiver.list("ops.example")); n != 1 {
			t.Errorf("a receiver that is gone got %d messages", n)
		}
		r.receiver.answers(func(int) *http.Response { return status(200) })
		r.hook("ops")
		synctest.Wait()
		if list := r.receiver.list("ops.example"); len(list) != 3 || list[1].id != list[0].id {
			t.Errorf("received %v", ids(list))
		}
	})
}

// TestRestart: a new term goes on where the last one was, with the same ids; what was delivered
// comes once.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.hook("ops")
		r.change("a")
		synctest.Wait()
		r.receiver.answers(func(int) *http.Response { return status(500) })
		r.change("b", "c")
		synctest.Wait()
		r.close()
		r.receiver.answers(func(int) *http.Response { return status(200) })
		r.open()
		defer r.close()
		synctest.Wait()
		list := r.receiver.list("ops.example")
		if len(list) != 4 || list[1].id != list[2].id || list[0].id == list[1].id || list[3].id == list[2].id {
			t.Errorf("received %v", ids(list))
		}
	})
}
