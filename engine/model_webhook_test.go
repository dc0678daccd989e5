package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// webhookOf names a webhook of a namespace.
type webhookOf struct {
	ns   interlock.Namespace
	name string
}

// hasWebhooks reports whether a namespace has a webhook.
func (m *model) hasWebhooks(ns interlock.Namespace) bool {
	for k := range m.webhooks {
		if k.ns == ns {
			return true
		}
	}
	return false
}

// expectWebhook works out the answer to a command about a webhook.
func (m *model) expectWebhook(cmd engine.Command) answer {
	ns := cmd.Header().Namespace
	gone := func(name string) bool {
		_, known := m.webhooks[webhookOf{ns, name}]
		return !known
	}
	secret := func(fresh bool) answer {
		return answer{outcome: engine.Done, check: func(got *engine.Effect) error {
			if got.Webhook == nil || got.NewSecret != fresh {
				return fmt.Errorf("it answers webhook %v with a new secret %v, want %v", got.Webhook, got.NewSecret, fresh)
			}
			return nil
		}}
	}
	switch c := cmd.(type) {
	case *engine.SetWebhook:
		a := secret(gone(c.Webhook.Name))
		if len(c.Webhook.Events) == 0 || c.Webhook.URL == "" {
			return refusalKey(interlock.CodeInvalidWebhook)
		}
		if !strings.HasPrefix(c.Webhook.URL, "https:") || strings.ContainsAny(c.Webhook.Name, "/") ||
			strings.Count(string(c.Webhook.Key), "{") != strings.Count(string(c.Webhook.Key), "}") {
			return refusalKey(interlock.CodeInvalidWebhook, "") // or Done: what is wrong with it the scripts say
		}
		return a
	case *engine.RotateWebhook:
		if gone(c.Name) {
			return refusalKey(interlock.CodeUnknownWebhook)
		}
		return secret(true)
	case *engine.DeleteWebhook:
		if gone(c.Name) {
			return refusalKey(interlock.CodeUnknownWebhook)
		}
	case *engine.AckWebhook:
		if gone(c.Name) || m.webhooks[webhookOf{ns, c.Name}].ID != c.ID {
			return refusalKey(interlock.CodeUnknownWebhook)
		}
	}
	return answer{outcome: engine.Done}
}

// permitWebhook: a webhook changes only by a command that names it.
func (m *model) permitWebhook(cmd engine.Command, ev *record.Event) error {
	kind, name := record.Kind(0), ""
	switch c := cmd.(type) {
	case *engine.SetWebhook:
		kind, name = record.WebhookSet, c.Webhook.Name
	case *engine.RotateWebhook:
		kind, name = record.WebhookRotated, c.Name
	case *engine.DeleteWebhook:
		kind, name = record.WebhookDeleted, c.Name
	case *engine.AckWebhook:
		kind, name = record.WebhookDelivered, c.Name
	}
	if ev.Kind != kind || ev.WebhookName != name {
		return errors.New("nobody asked for it")
	}
	return nil
}

// foldWebhook takes in what becomes of a webhook.
func (m *model) foldWebhook(cmd engine.Command) {
	ns := cmd.Header().Namespace
	if m.webhooks == nil {
		m.webhooks = map[webhookOf]engine.WebhookView{}
	}
	switch c := cmd.(type) {
	case *engine.SetWebhook:
		k := webhookOf{ns, c.Webhook.Name}
		w, known := m.webhooks[k]
		switch {
		case !known:
			w = engine.WebhookView{
				ID: c.ID, Generation: 1, Secret: c.Secret, LinkKey: c.LinkKey, Rotated: m.now, Cursor: c.Cursor,
			}
		case w.URL != c.Webhook.URL:
			w.Generation++
			w.Owners, w.Approver = nil, ""
		}
		if c.Actor != "" && len(w.Owners) == 0 && w.URL != c.Webhook.URL {
			w.Owners = []string{c.Actor}
		}
		switch {
		case !c.Webhook.ApproveLinks || !w.ApproveLinks && !mayApprove(c.Actor):
			w.Approver = ""
		case mayApprove(c.Actor):
			if w.Approver = c.Actor; !slices.Contains(w.Owners, c.Actor) {
				w.Owners = append(slices.Clip(w.Owners), c.Actor)
			}
		}
		w.Webhook, w.Gone = c.Webhook, false
		m.webhooks[k] = w
	case *engine.RotateWebhook:
		k := webhookOf{ns, c.Name}
		w := m.webhooks[k]
		w.Former, w.FormerUntil = w.Secret, m.now.Add(interlock.WebhookSecretTime)
		w.Secret, w.LinkKey, w.Rotated = c.Secret, c.LinkKey, m.now
		w.Generation++
		m.webhooks[k] = w
	case *engine.DeleteWebhook:
		delete(m.webhooks, webhookOf{ns, c.Name})
	case *engine.AckWebhook:
		k := webhookOf{ns, c.Name}
		w := m.webhooks[k]
		w.Cursor = max(w.Cursor, c.Cursor)
		w.Delivered += c.Delivered
		w.GivenUp += c.GivenUp
		w.Paused, w.Gone = w.Paused || c.Gone, w.Gone || c.Gone
		m.webhooks[k] = w
	}
}

// actsFor returns the principals that give an answer: its own, and for a link also those that chose the receiver
// of its webhook. ok is false for a link to a receiver that no principal with the right to answer has chosen.
func (m *model) actsFor(c *engine.Answer) (list []string, ok bool) {
	name, isLink := strings.CutPrefix(c.Actor, "webhook:")
	if !isLink {
		return []string{c.Actor}, true
	}
	w := m.webhooks[webhookOf{c.Namespace, name}]
	return append([]string{c.Actor}, w.Owners...), w.Approver != ""
}

// mayApprove reports whether a principal confirms the receivers of links in the webhooks that it sets.
func mayApprove(name string) bool {
	return name != "" && principalOf(name).Roles&interlock.RoleApprover != 0
}

// checkWebhooks compares the webhooks of a namespace with the engine's.
func (m *model) checkWebhooks(e *engine.Engine, ns interlock.Namespace) error {
	want := map[string]engine.WebhookView{}
	for k, w := range m.webhooks {
		if k.ns == ns {
			want[k.name] = w
		}
	}
	got := e.WebhooksOf(ns)
	if len(got) != len(want) {
		return fmt.Errorf("there are the webhooks %v, want %v", got, slices.Sorted(maps.Keys(want)))
	}
	for _, w := range got {
		if fmt.Sprint(w) != fmt.Sprint(want[w.Name]) {
			return fmt.Errorf("webhook %s is %v, want %v", w.Name, w, want[w.Name])
		}
	}
	if len(got) > 0 != slices.Contains(e.WebhookNamespaces(), ns) {
		return fmt.Errorf("the namespaces with webhooks are %v", e.WebhookNamespaces())
	}
	return nil
}
