// Package endpoint is the policy of fail-over for the clients of this module: the ordered list of a
// cluster's servers, which of them is tried next, the pause between two rounds over all of them, and
// the share of a caller's time that one attempt may use.
//
// It must never return an address that is not on the list: a server could otherwise send a
// client's credential to an address of its choice.
//
// Start reading at list.go.
package endpoint
