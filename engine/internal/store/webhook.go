package store

import (
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Webhooks of a namespace. The state has what must survive the server: the settings, the secrets,
// and how far the messages have come. Attempts and their results belong to the sender, which is
// package webhook.

// Webhook returns the webhook with a name, nil for none.
func (s *Namespace) Webhook(name string) *record.WebhookState {
	if s == nil {
		return nil
	}
	return s.Webhooks[name]
}

// SortedWebhooks returns the webhooks in the order of their names.
func (s *Namespace) SortedWebhooks() []*record.WebhookState {
	list := make([]*record.WebhookState, 0, len(s.Webhooks))
	for _, name := range slices.Sorted(maps.Keys(s.Webhooks)) {
		list = append(list, s.Webhooks[name])
	}
	return list
}

// ActsFor returns the principals that act in what a caller does: itself, and for a link of a webhook the
// owners of that. no is the reason why such a link is no right to answer: anybody may have chosen its
// receiver. On a server without credentials by is nil, and may do everything.
func (s *Namespace) ActsFor(actor string, by *interlock.Principal) (principals []string, no *Refusal) {
	name, isLink := strings.CutPrefix(actor, interlock.WebhookPrefix)
	if !isLink || by == nil {
		return []string{actor}, nil
	}
	w := s.Webhook(name)
	if w == nil || !w.ApproveLinks || w.Approver == "" || !by.Has(interlock.RoleApprover) {
		return nil, &Refusal{
			Code: interlock.CodeForbidden, Message: message.New(message.LinkUnconfirmed, message.Str(keypath.Clip(name, 64))),
		}
	}
	return append([]string{actor}, w.Owners...), nil
}

// UnknownWebhook returns the refusal of a command about a webhook that is not there.
func UnknownWebhook(name string) *Refusal {
	return &Refusal{
		Code:    interlock.CodeUnknownWebhook,
		Message: message.New(message.UnknownWebhook, message.Str(keypath.Clip(name, 64))),
	}
}

// evolveWebhook folds the events about webhooks.
func (st *State) evolveWebhook(ev *record.Event) error {
	s := st.Namespace(ev.Namespace)
	known := s.Webhooks[ev.WebhookName]
	switch ev.Kind {
	case record.WebhookSet, record.WebhookRotated:
		w, err := ev.Webhook()
		if err != nil {
			return err
		}
		if known == nil {
			st.Webhooks++
		}
		if s.Webhooks == nil {
			s.Webhooks = map[string]*record.WebhookState{}
		}
		s.Webhooks[w.Name] = &w
		return nil
	case record.WebhookDeleted:
		if known == nil {
			return errUnknown
		}
		delete(s.Webhooks, ev.WebhookName)
		st.Webhooks--
		return nil
	}
	p, err := ev.WebhookProgress()
	if err != nil {
		return err
	}
	if known == nil || known.ID != p.ID {
		return errUnknown
	}
	w := *known // queries share the old one
	w.Cursor, w.Delivered, w.GivenUp = max(w.Cursor, p.Cursor), w.Delivered+p.Delivered, w.GivenUp+p.GivenUp
	if p.Gone {
		w.Paused, w.Gone = true, true
	}
	s.Webhooks[w.Name] = &w
	return nil
}
