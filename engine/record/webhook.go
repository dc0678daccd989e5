package record

import "github.com/interlockdev/interlock"

// WebhookState is a webhook as the journal keeps it. Like the ids of leases, its secrets stand in
// the journal in clear text: a server that takes over signs with them.
type WebhookState struct {
	interlock.Webhook

	ID         string `journal:"8"` // random: another webhook of the same name has another one
	Generation uint64 `journal:"9"` // counts the rotations and the changes of the URL, from 1 on
	Secret     []byte `journal:"10"`
	LinkKey    []byte `journal:"11"` // signs the links that answer a question
	Rotated    Time   `journal:"12"` // when Secret was made
	Former     []byte `journal:"13"` // the secret before, which signs as well until FormerUntil
	// FormerUntil is when the former secret ends; 0: there is none.
	FormerUntil Time `journal:"14"`

	// Cursor is the index up to which messages about events were delivered or given up.
	Cursor    interlock.Index `journal:"15"`
	Delivered uint64          `journal:"16"`
	GivenUp   uint64          `journal:"17"`
	Gone      bool            `journal:"18"` // Paused since the receiver answered that it is gone

	// Owners are the principals that chose the URL, or confirmed it: an answer by a link counts as the act of each.
	Owners []string `journal:"19"`
	// Approver is the one with the right to approve that confirmed the receiver of links; "": none.
	Approver string `journal:"20"`
}

// WebhookKeyBytes is the length of a webhook's secrets.
const WebhookKeyBytes = 32

// WebhookProgress is how far the messages of a webhook have come.
type WebhookProgress struct {
	ID        string          `journal:"1"` // of the webhook
	Cursor    interlock.Index `journal:"2"`
	Delivered uint64          `journal:"3"` // since the last progress
	GivenUp   uint64          `journal:"4"` // likewise
	Gone      bool            `journal:"5"` // the receiver is gone, so the webhook pauses
}

// Webhook returns the webhook after a WebhookSet or WebhookRotated.
func (ev *Event) Webhook() (w WebhookState, err error) {
	err = readWebhookState(ev.Blob, &w)
	return w, err
}

// WebhookProgress returns the progress that a WebhookDelivered reports.
func (ev *Event) WebhookProgress() (p WebhookProgress, err error) {
	err = readWebhookProgress(ev.Blob, &p)
	return p, err
}

// AppendWebhook appends a webhook to b.
func AppendWebhook(b []byte, w *WebhookState) []byte { return appendWebhookState(b, w) }

// AppendWebhookSettings appends the settings of a webhook.
func AppendWebhookSettings(b []byte, w *interlock.Webhook) []byte { return appendWebhook(b, w) }

// AppendWebhookProgress appends a progress to b.
func AppendWebhookProgress(b []byte, p *WebhookProgress) []byte { return appendWebhookProgress(b, p) }
