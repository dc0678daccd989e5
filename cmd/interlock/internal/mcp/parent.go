package mcp

import (
	"context"
	"os"
	"time"
)

// lookForParent is how often this process looks for its parent where the system does not tell of its end.
const lookForParent = time.Second

// withParent returns a context that ends with the parent of this process, which is the agent's program. The end of the
// input does not tell it: another process of the agent's, such as a wrapper or a forked program, may have the pipe.
func withParent(ctx context.Context) context.Context {
	parent := os.Getppid()
	if parent <= 1 { // in a container, the first process; else the parent has gone before us
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		if os.Getppid() == parent && awaitEnd(parent) {
			return
		}
		tick := time.NewTicker(lookForParent)
		defer tick.Stop()
		for os.Getppid() == parent { // a child of a parent that has ended has another one
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx
}
