// Package top is the command top: a live view of a namespace on a terminal.
//
// It shows pictures of GET /v1/overview, and asks for more only when a person does: /v1/why for the selected key,
// /v1/events for the last hour's trouble.
//
// Invariants: nothing is changed at the server before a person has answered a question that names the lease by its
// fence. The terminal is left as it was found, however the command ends. Text of agents is one clean line, and is cut
// by the cells that it takes on the terminal, so that no text moves another column.
//
// A model is pure: keys and pictures go in, frames and requests come out, and no terminal, clock or connection is
// needed to test it. Start reading at model.go, then frame.go; top.go joins the model to the terminal and the server.
package top
