package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/webhook"
)

// Operators' settings of webhooks. Package webhook sends the messages.

// WebhookConfig is how the webhooks of a server work.
type WebhookConfig struct {
	// Allow lists networks, addresses and hosts that webhooks may call besides public addresses.
	Allow []string
	// PublicURL is the address under which people reach this server. Without one no message has links.
	PublicURL string
}

// newSender makes the sender of a server's messages.
func (s *Server) newSender(cfg WebhookConfig) (*webhook.Sender, error) {
	targets, err := webhook.ParseTargets(cfg.Allow)
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Config{
		Shard: s.shard, Targets: targets, PublicURL: cfg.PublicURL, Event: eventJSON, Count: s.obs.figures.webhook,
		Logger: s.log,
	}), nil
}

// SendWebhooks sends the messages of all webhooks, until Drain or the end of the shard. It returns
// when no request is under way any more. Without it webhooks can be set, and nothing is sent.
func (s *Server) SendWebhooks() { s.sender.Run(s.serving) }

// eventJSON returns an event as GET /v1/events shows it.
func eventJSON(ev *record.Event, index interlock.Index, epoch interlock.Epoch) json.RawMessage {
	j := newJSON()
	defer j.free()
	writeEvent(j, ev, index, epoch)
	return bytes.Clone(j.b)
}

func freshKey() []byte {
	key := make([]byte, record.WebhookKeyBytes)
	_, _ = rand.Read(key) // it never fails
	return key
}

// setWebhook is PUT /v1/webhooks/{name}.
func (c *call) setWebhook() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	id := freshID()
	cmd := &engine.SetWebhook{
		Head: h, Webhook: interlock.Webhook{Name: name}, ID: string(id[:]), Secret: freshKey(), LinkKey: freshKey(),
		Cursor: c.s.shard.At().Index,
	}
	if !c.body(func(d *jsonIn) { d.webhookRequest(&cmd.Webhook) }) {
		return
	}
	for _, err := range []error{webhook.CheckEvents(cmd.Webhook.Events), c.s.sender.CheckURL(cmd.Webhook.URL)} {
		if err != nil {
			c.refuse(interlock.CodeInvalidWebhook, err.Error())
			return
		}
	}
	c.changeWebhook("set", cmd)
}

// rotateWebhook is POST /v1/webhooks/{name}/rotate.
func (c *call) rotateWebhook() {
	h, name, ok := c.ofNamed()
	if !ok || !c.body(func(d *jsonIn) { d.object(nil, nil) }) {
		return
	}
	c.changeWebhook("rotated", &engine.RotateWebhook{Head: h, Name: name, Secret: freshKey(), LinkKey: freshKey()})
}

// changeWebhook answers with a webhook, and with its secret if the command made that.
func (c *call) changeWebhook(outcome string, cmd engine.Command) {
	eff, at, ok := c.do(cmd)
	if !ok {
		return
	}
	j := c.reply()
	j.str("outcome", outcome)
	if eff.Webhook != nil { // else the command is a repetition, and the webhook was deleted since
		c.writeWebhook(j, "webhook", eff.Webhook)
		if eff.NewSecret {
			j.str("secret", webhook.Secret(eff.Webhook))
		}
	}
	c.send(http.StatusOK, j, at)
}

// deleteWebhook is DELETE /v1/webhooks/{name}.
func (c *call) deleteWebhook() {
	h, name, ok := c.ofNamed()
	if !ok {
		return
	}
	if _, at, ok := c.do(&engine.DeleteWebhook{Head: h, Name: name}); ok {
		c.done("deleted", at)
	}
}

// findWebhook reads a webhook. ok is false when the call was answered.
func (c *call) findWebhook() (w engine.WebhookView, at interlock.At, ok bool) {
	name, ok := c.pathName()
	if !ok {
		return w, at, false
	}
	known := false
	at, ok = c.read(func(e *engine.Engine, _ engine.Time) { w, known = e.Webhook(c.namespace, name) })
	if ok && !known {
		c.refuse(
			interlock.CodeUnknownWebhook, "there is no webhook "+clipped(name)+": GET /v1/webhooks lists the existing ones",
		)
	}
	return w, at, ok && known
}

// getWebhook is GET /v1/webhooks/{name}.
func (c *call) getWebhook() {
	if w, at, ok := c.findWebhook(); ok {
		j := c.reply()
		c.writeWebhook(j, "webhook", &w)
		c.send(http.StatusOK, j, at)
	}
}

// listWebhooks is GET /v1/webhooks.
func (c *call) listWebhooks() {
	var list []engine.WebhookView
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { list = e.WebhooksOf(c.namespace) })
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("webhooks")
	for i := range list {
		c.writeWebhook(j, "", &list[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// testWebhook is POST /v1/webhooks/{name}/test: it sends a message now, also of a paused webhook.
func (c *call) testWebhook() {
	if !c.isJSON() || !c.body(func(d *jsonIn) { d.object(nil, nil) }) {
		return
	}
	w, at, ok := c.findWebhook()
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()
	a := c.s.sender.Test(ctx, c.namespace, &w)
	j := c.reply()
	if a.Problem == "" {
		j.str("outcome", "delivered")
	} else {
		j.str("outcome", "failed")
	}
	j.int("status", int64(a.Status))
	j.said("problem", a.Problem)
	c.send(http.StatusOK, j, at)
}

// writeWebhook writes a webhook without its secret.
func (c *call) writeWebhook(j *jsonOut, name string, w *engine.WebhookView) {
	j.open(name)
	j.text("name", w.Name)
	j.str("url", w.URL)
	j.openArray("events")
	for _, event := range w.Events {
		j.str("", event)
	}
	j.closeArray()
	j.said("key", string(w.Key))
	j.str("format", w.Format.String())
	j.bool("paused", w.Paused)
	j.bool("approve_links", w.ApproveLinks)
	j.said("confirmed_by", cleanText(w.Approver))
	j.int("generation", int64(w.Generation))
	j.decimal("cursor", uint64(w.Cursor))
	j.int("delivered", int64(w.Delivered))
	j.int("given_up", int64(w.GivenUp))
	if w.Gone {
		j.bool("gone", true)
	}
	if w.FormerUntil != 0 {
		j.duration("former_secret_ms", max(0, time.Until(time.Unix(0, int64(w.FormerUntil)))))
	}
	if st := c.s.sender.Status(c.namespace, w.Name); !st.Attempted.IsZero() {
		j.open("delivery")
		j.timestamp("attempted_at", st.Attempted)
		j.int("status", int64(st.Answer.Status))
		j.said("problem", st.Answer.Problem)
		j.int("failures", int64(st.Failures))
		if !st.Next.IsZero() {
			j.duration("next_ms", max(0, time.Until(st.Next)))
		}
		if !st.Pending.IsZero() {
			j.duration("pending_ms", time.Since(st.Pending))
		}
		j.close()
	}
	j.close()
}
