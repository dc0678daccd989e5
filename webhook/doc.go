// Package webhook sends messages about events of a namespace to the HTTP endpoints that its
// operators have set, in the form of Standard Webhooks (https://www.standardwebhooks.com).
//
//	journal ─► worker of a webhook ─► filter ─► message ─► POST, signed ─► receiver
//	   ▲                                                        │
//	   └── AckWebhook: the cursor, after the messages ◄─────────┘
//
// Each webhook has a worker of its own, which follows the journal from the webhook's durable
// cursor, and has at most one request in progress. So no receiver delays another one, a webhook's
// messages have the order of the events, and memory is bounded by the number of webhooks. A
// message is delivered at least once: after a crash between a delivery and its acknowledgement it
// comes again, under the same id.
//
// The package must never send a request to an address that Targets refuses, follow a redirect,
// use a proxy from the environment, or put a URL or a secret into a log or an error. It must never
// decide about anything: it acts on the state of the engine alone.
//
// Start reading at Sender in sender.go, then worker.go; at event.go for the types of events.
package webhook
