// Package mcp is the door for agents that speak the Model Context Protocol: seven tools, a few
// resources and one prompt, over HTTP within a server or over standard input and output.
//
//	handler.go    the door at /mcp of a server: its refusals, and the end of a conversation
//	stdio.go      the door of one agent, which is a process
//	server.go     what the protocol announces
//	tool.go       the definitions of the tools, as a model reads them
//	message.go    what a message is, and its bounds
//	line.go       messages of a process, one a line; response.go those over HTTP
//	talk.go       how the conversations of one agent follow each other; memory.go what is remembered of it
//	delivery.go   answers on their way, and what is given back if they are lost
//	visit.go      one call: its agent, its deadline, its progress
//	argument.go   the arguments of a call
//	answer.go     the answers, and how much of other agents' text is in them
//	acquire.go    acquire, wait and release; look.go, commit.go, effect.go and send.go the other tools
//	place.go      the tickets that agents know
//	resource.go   the resources, and prompt.go the prompt
//
// It must never decide what the HTTP API decides: each call is an ordinary call of the API under the
// agent's own credential. It must never hold a call for more than 50 s, since clients cut calls off
// at 60 s. Text of other agents reaches a model quoted, cut and marked as data. The package server
// must never import it.
//
// Start reading at visit.go, then acquire.go.
package mcp
