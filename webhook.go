package interlock

import "strings"

// Webhook is an operator's settings of a webhook: an HTTP endpoint that receives messages about
// events of a namespace.
type Webhook struct {
	Name   string
	URL    string
	Events []string // types of events, or "*"
	// Key restricts the messages to events about some keys: those that fit the shape of a pattern
	// (account:{id}), or without a variable one key and all below it. "" is no restriction.
	Key          Key
	Format       WebhookFormat
	Paused       bool
	ApproveLinks bool // messages about questions contain a link with which any reader may answer
}

// WebhookFormat is the form of the body of a webhook's messages.
type WebhookFormat uint8

const (
	// WebhookStandard is the JSON body of Standard Webhooks.
	WebhookStandard WebhookFormat = iota
	// WebhookSlack is the body of an incoming webhook of Slack and of receivers compatible with it.
	WebhookSlack
)

var webhookFormatNames = [...]string{WebhookStandard: "standard", WebhookSlack: "slack"}

// String returns the name that the HTTP API uses.
func (f WebhookFormat) String() string { return nameOf(webhookFormatNames[:], f) }

// ParseWebhookFormat parses the text of WebhookFormat.String; "" is WebhookStandard.
func ParseWebhookFormat(s string) (WebhookFormat, bool) {
	if s == "" {
		return WebhookStandard, true
	}
	return parseName[WebhookFormat](webhookFormatNames[:], s)
}

// WebhookPrefix begins the name of the principal that answers a question by a link in a message
// of a webhook. No credential has such a name.
const WebhookPrefix = "webhook:"

// IsWebhook reports whether the name of a principal is that of a webhook.
func IsWebhook(principal string) bool { return strings.HasPrefix(principal, WebhookPrefix) }
