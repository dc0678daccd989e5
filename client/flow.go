package client

import (
	"context"
	"strconv"
)

// SharedFlow is a flow for a process that is one agent with one thread of control, with any
// number of goroutines: keys held by one of them are granted to the others too.
const SharedFlow = "main"

type flowKey struct{}

// WithFlow names the thread of control that requests under ctx belong to. A
// subagent or a parallel tool call is a flow of its own; nested steps of one
// thread share one. At most interlock.MaxNameBytes bytes.
func WithFlow(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, flowKey{}, name)
}

// flow returns the flow of a request that names one, or none.
func (c *Client) flow(ctx context.Context, named string) string {
	if named != "" {
		return named
	}
	if name, ok := ctx.Value(flowKey{}).(string); ok && name != "" {
		return name
	}
	return "flow-" + strconv.FormatUint(c.flows.Add(1), 10)
}
