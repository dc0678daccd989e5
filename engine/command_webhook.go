package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// The commands about webhooks.

// WebhookView is a webhook with its secrets. Its slices are never changed.
type WebhookView = record.WebhookState

// SetWebhook sets a webhook, or replaces its settings. A new one gets the secrets of the command,
// and messages about events after Cursor; another URL makes the links of earlier messages invalid.
// Answered by Done with Webhook, and NewSecret if it is new.
type SetWebhook struct {
	Head    `fingerprint:"33"`
	Webhook interlock.Webhook `fingerprint:"1,stored=AppendWebhookSettings"`
	ID      string            `fingerprint:"-"` // fresh random bits, as Secret and LinkKey
	Secret  []byte            `fingerprint:"-"`
	LinkKey []byte            `fingerprint:"-"`
	Cursor  interlock.Index   `fingerprint:"-"` // the newest durable entry
}

// DeleteWebhook forgets a webhook, with the messages that it has not delivered. Answered by Done.
type DeleteWebhook struct {
	Head `fingerprint:"35"`
	Name string `fingerprint:"1"`
}

// RotateWebhook replaces the secret of a webhook; for interlock.WebhookSecretTime the former one signs
// as well. The links of earlier messages become invalid. Answered by Done with Webhook and
// NewSecret.
type RotateWebhook struct {
	Head    `fingerprint:"34"`
	Name    string `fingerprint:"1"`
	Secret  []byte `fingerprint:"-"` // fresh random bits
	LinkKey []byte `fingerprint:"-"`
}

// AckWebhook reports how far the messages of a webhook have come. No client sends it. A webhook
// that was deleted since is refused. Answered by Done.
type AckWebhook struct {
	Head
	Name string
	record.WebhookProgress
}
