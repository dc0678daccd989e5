package engine_test

import (
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// webhookCommand carries out a command about a webhook.
func (s *script) webhookCommand(name string, w *words) error {
	head := s.head(w)
	hook := w.get("webhook")
	secret := s.id()
	key := secret[:]
	switch name {
	case "webhook":
		url := w.get("url")
		if n, err := strconv.Atoi(strings.TrimPrefix(url, "x")); err == nil {
			url = strings.Repeat("x", n)
		}
		format, _ := interlock.ParseWebhookFormat(w.get("format"))
		c := &engine.SetWebhook{
			Head: head, ID: string(secret[:]), Secret: key, LinkKey: key, Cursor: interlock.Index(w.number("at")),
		}
		c.Webhook = interlock.Webhook{
			Name: hook, URL: url, Key: interlock.Key(w.get("key")), Format: format, Paused: w.has("paused"),
			ApproveLinks: w.has("links"),
		}
		if w.has("events") {
			c.Webhook.Events = strings.Split(w.get("events"), ",")
		}
		return s.tellWebhook(c)
	case "rotate":
		return s.tellWebhook(&engine.RotateWebhook{Head: head, Name: hook, Secret: key, LinkKey: key})
	case "unhook":
		return s.tellWebhook(&engine.DeleteWebhook{Head: head, Name: hook})
	}
	known, _ := s.e.Webhook(head.Namespace, hook)
	c := &engine.AckWebhook{Head: head, Name: hook, WebhookProgress: record.WebhookProgress{
		ID: known.ID, Cursor: interlock.Index(w.number("at")), Delivered: uint64(w.number("delivered")),
		GivenUp: uint64(w.number("given_up")), Gone: w.has("gone"),
	}}
	if w.has("former") {
		c.ID = string(secret[:])
	}
	return s.tellWebhook(c)
}

// tellWebhook carries out a command and writes its answer, and what it journaled.
func (s *script) tellWebhook(cmd engine.Command) error {
	if err := s.step(cmd); err != nil {
		return err
	}
	for i := range s.last.Events {
		s.printf("%v", s.last.Events[i].Kind)
	}
	for i := range s.last.Effects {
		eff := &s.last.Effects[i]
		switch {
		case eff.Outcome == engine.Refused:
			s.printf("refused %s: %s", eff.Code, prose.Sentence(eff.Message))
		case eff.NewSecret:
			s.printf("ok, and its secret")
		default:
			s.printf("ok")
		}
	}
	return nil
}

// showWebhooks writes the webhooks of a namespace.
func (s *script) showWebhooks(ns interlock.Namespace) {
	for _, w := range s.e.WebhooksOf(ns) {
		text := "generation=" + strconv.FormatUint(w.Generation, 10) + " at=" + strconv.FormatUint(uint64(w.Cursor), 10)
		if w.Key != "" {
			text += " key=" + string(w.Key)
		}
		if w.Paused {
			text += " paused"
		}
		if w.Gone {
			text += " gone"
		}
		if w.FormerUntil > s.now {
			text += " former_for=" + w.FormerUntil.Sub(s.now).String()
		}
		s.printf(
			"%s %s %s %s delivered=%d given_up=%d", w.Name, w.URL, strings.Join(w.Events, ","), text, w.Delivered, w.GivenUp,
		)
	}
}
