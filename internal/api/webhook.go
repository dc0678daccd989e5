package api

// WebhookRequest is the body of PUT /v1/webhooks/{name}.
type WebhookRequest struct {
	// Receives the messages: https, or http for receivers that the server's operator allows.
	URL string `json:"url" min:"1" max:"MaxURLBytes"`
	// Types of events, or *.
	Events []string `json:"events" itemmin:"1" max:"MaxWebhookEvents"`
	// Only events about keys that fit this pattern, such as account:{id}; one without variables stands
	// for the key and all below it.
	Key string `json:"key,omitempty" max:"MaxShapeBytes"`
	// The form of the body.
	Format string `json:"format,omitempty" enum:"standard,slack" default:"standard"`
	// No messages are sent for now; they wait.
	Paused bool `json:"paused,omitempty"`
	// Messages about questions contain a link. If the caller has the role approver, too, it confirms the
	// receiver: any reader of it may answer then, as the principal webhook:NAME, which counts as the caller's
	// act. Else the link shows the question, and its reader logs in. The server needs a public URL.
	ApproveLinks bool `json:"approve_links,omitempty"`
}

// Webhook is a webhook as it is shown. Its secret is not.
//
//schema:required format,paused,approve_links
type Webhook struct {
	// Its name.
	Name string `json:"name" text:"line"`
	WebhookRequest
	// The principal with the role approver that confirmed the receiver of links. Left out: none did since the
	// URL changed or links were off, and a reader of a link logs in to answer.
	Confirmed string `json:"confirmed_by,omitempty" text:"line"`
	// Counts the rotations of the secret and the changes of the URL.
	Generation uint64 `json:"generation" min:"1"`
	// The index up to which messages about events were delivered or given up.
	Cursor Decimal `json:"cursor"`
	// Messages that were delivered.
	Delivered uint64 `json:"delivered"`
	// Messages that were given up.
	GivenUp uint64 `json:"given_up"`
	// It is paused since its receiver answered 410.
	Gone bool `json:"gone,omitempty"`
	// The time until the former secret signs no more.
	FormerFor Milliseconds `json:"former_secret_ms,omitempty"`
	// The state of the deliveries, since the start of the server or the set of the webhook.
	Delivery *WebhookDelivery `json:"delivery,omitempty"`
}

// WebhookDelivery is how the deliveries of a webhook stand.
type WebhookDelivery struct {
	// When the last attempt was made.
	Attempted Time `json:"attempted_at"`
	// The status that the receiver answered; 0: none.
	Status int `json:"status" min:"0"`
	// Why the attempt failed.
	Problem string `json:"problem,omitempty"`
	// Failed attempts in a row.
	Failures int `json:"failures" min:"0"`
	// The time until the next attempt.
	Next Milliseconds `json:"next_ms,omitempty"`
	// The age of the event of the message that is tried.
	Pending Milliseconds `json:"pending_ms,omitempty"`
}

// WebhookView is the answer of GET /v1/webhooks/{name}.
type WebhookView struct {
	Webhook Webhook `json:"webhook"`
	Stamp
}

// WebhookList is the answer of GET /v1/webhooks.
type WebhookList struct {
	Webhooks []Webhook `json:"webhooks"`
	Stamp
}

// WebhookChange is the answer of PUT /v1/webhooks/{name} and of POST /v1/webhooks/{name}/rotate.
type WebhookChange struct {
	Outcome string  `json:"outcome" enum:"set,rotated"`
	Webhook Webhook `json:"webhook"`
	// Signs the messages. It is shown here only, when it was made.
	Secret string `json:"secret,omitempty"`
	Stamp
}

// WebhookTest is the answer of POST /v1/webhooks/{name}/test.
type WebhookTest struct {
	Outcome string `json:"outcome" enum:"delivered,failed"`
	// The status that the receiver answered; 0: none.
	Status int `json:"status" min:"0"`
	// Why it failed.
	Problem string `json:"problem,omitempty"`
	Stamp
}
