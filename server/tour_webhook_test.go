package server

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/webhook"
)

// fakeReceiver answers the messages of webhooks with a status.
type fakeReceiver struct{ status atomic.Int64 }

func (f *fakeReceiver) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(f.status.Load()), Body: http.NoBody}, nil
}

// tourWebhooks sets webhooks of a namespace of their own, and has messages fail and arrive.
func tourWebhooks(d *door) {
	ns := []string{"Interlock-Namespace", "hooks"}
	put := func(name, body string) *reply { return d.send(d.request("PUT", "/v1/webhooks/"+name, body, ns...)) }
	receiver := &fakeReceiver{}
	receiver.status.Store(500)
	targets, err := webhook.ParseTargets(nil)
	if err != nil {
		d.Fatal(err)
	}
	real := d.server.sender
	sender := webhook.New(webhook.Config{Shard: d.server.shard, Targets: targets, Event: eventJSON, Transport: receiver})
	d.server.sender = sender
	d.server.obs.sender.Store(sender)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); sender.Run(ctx) }()
	defer func() {
		cancel()
		<-done
		d.server.sender = real
		d.server.obs.sender.Store(real)
	}()

	d.get("/v1/webhooks/ops", ns...).want(404, "unknown_webhook")
	d.post("/v1/webhooks/ops/test", "{}", ns...).want(404, "unknown_webhook")
	refused := put("ops", `{"url":"https://10.0.0.1/","events":["*"]}`).want(400, "invalid_webhook")
	refused.says("detail", "--webhook-allow")
	refused = put("ops", `{"url":"https://a.example/","events":["dead_leter"]}`).want(400, "invalid_webhook")
	refused.says("detail", "dead_letter")
	full := `"url":"https://a.example/x","events":["queue_changed"],"key":"account:{id}",` +
		`"format":"slack","paused":true,"approve_links":true`
	made := put("ops", "{"+full+"}").want(200).is("outcome", "set")
	secret, _ := made.at("secret").(string)
	if !strings.HasPrefix(secret, "whsec_") || !strings.Contains(made.raw, full) {
		d.Errorf("%s, want %s and a secret", made.raw, full)
	}
	put("ops", `{"url":"https://a.example/x","events":["queue_changed"]}`).want(200)
	d.send(d.request("PUT", "/v1/queues/fees", "{}", ns...)).want(200)
	synctest.Wait()
	<-time.After(time.Second) // of the bubble
	shown := d.get("/v1/webhooks/ops", ns...).want(200)
	if shown.num("webhook.delivery.status") != 500 || shown.num("webhook.delivery.failures") != 1 ||
		shown.num("webhook.delivery.pending_ms") != 1000 || shown.num("webhook.delivery.next_ms") < 4000 ||
		strings.Contains(shown.raw, "whsec_") {
		d.Error(shown.raw)
	}
	tried := d.post("/v1/webhooks/ops/test", "{}", ns...).want(200)
	tried.is("outcome", "failed").is("problem", "the receiver answered 500")
	receiver.status.Store(200)
	d.post("/v1/webhooks/ops/test", "{}", ns...).want(200).is("outcome", "delivered")
	rotated := d.post("/v1/webhooks/ops/rotate", "{}", ns...).want(200).is("outcome", "rotated")
	if rotated.at("secret") == made.at("secret") || rotated.num("webhook.former_secret_ms") == 0 {
		d.Error(rotated.raw)
	}
	synctest.Wait() // it was tried again at once
	if list := d.get("/v1/webhooks", ns...).want(200); list.num("webhooks.0.delivered") != 1 {
		d.Error(list.raw)
	}
	view, ok := engine.WebhookView{}, false
	_, _ = d.server.shard.Read(ctx, "hooks", func(e *engine.Engine, _ engine.Time) {
		view, ok = e.Webhook("hooks", "ops")
	})
	if !ok {
		d.Fatal("the webhook is gone")
	}
	ack := &engine.AckWebhook{Head: engine.Head{Namespace: "hooks"}, Name: "ops"}
	ack.WebhookProgress = record.WebhookProgress{ID: view.ID, Cursor: view.Cursor, GivenUp: 2, Gone: true}
	if _, _, err := d.server.shard.Do(ctx, ack); err != nil {
		d.Fatal(err)
	}
	shown = d.get("/v1/webhooks/ops", ns...).want(200)
	if shown.at("webhook.gone") != true || shown.num("webhook.given_up") != 2 {
		d.Error(shown.raw)
	}
	lead := &interlock.Principal{Name: "lead", Roles: interlock.RoleOperator | interlock.RoleApprover}
	confirm := &engine.SetWebhook{
		Head: engine.Head{Namespace: "hooks", Actor: lead.Name, Principal: lead}, Webhook: view.Webhook, ID: "x",
	}
	confirm.Webhook.ApproveLinks = true
	if _, _, err := d.server.shard.Do(ctx, confirm); err != nil {
		d.Fatal(err)
	}
	d.get("/v1/webhooks/ops", ns...).want(200).is("webhook.confirmed_by", "lead")
	d.send(d.request("DELETE", "/v1/webhooks/ops", "", ns...)).want(200).is("outcome", "deleted")
	d.send(d.request("DELETE", "/v1/webhooks/ops", "", ns...)).want(404, "unknown_webhook")
	events := d.get("/v1/events", ns...).want(200).raw
	for _, want := range []string{
		`"webhook_set"`, `"webhook_rotated"`, `"webhook_delivered"`, `"webhook_deleted"`, `"webhook":"ops"`, `"gone":true`,
	} {
		if !strings.Contains(events, want) {
			d.Errorf("the events lack %s: %s", want, events)
		}
	}
	if strings.Contains(events, "a.example") {
		d.Error("the events show the URL, which may be a secret")
	}
}
