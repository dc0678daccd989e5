package api

import "strings"

// Digits returns the part that the id of a ticket and the id of its lease have in common.
func Digits(id string) string {
	_, digits, _ := strings.Cut(id, "_")
	return digits
}

// LeaseOf returns the id that the lease of a ticket has.
func LeaseOf(id TicketID) LeaseID { return "l_" + Digits(id) }

// TicketOf returns the id of the ticket that a lease had.
func TicketOf(id LeaseID) TicketID { return "t_" + Digits(id) }
