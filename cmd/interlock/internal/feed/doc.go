// Package feed follows a stream of events of the server, for events, state watch and the ledger.
//
// It must never show an event twice or pass over one when the connection ends between two events.
//
// Start reading at feed.go.
package feed
