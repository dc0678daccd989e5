// Package mcp is the command mcp: the door of one agent that speaks the Model Context Protocol over
// standard input and output.
//
// It must never write anything but messages of the protocol to standard output.
//
// Start reading at mcp.go.
package mcp
