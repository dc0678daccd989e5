package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/agent"
)

// door is what the two transports have in common.
type door struct {
	hub     *agent.Hub
	places  places
	version string
	log     *slog.Logger
	// ttl is that of new leases, whatever their keys' patterns have: signs of life come by it.
	ttl time.Duration
	// open ends when the door closes.
	open context.Context

	deliveries *deliveries
	talks      *talks // of a door over HTTP

	// A door of one agent has these.
	process string // the key of its session
	name    string // the agent's name, "" for one made of the client's
	join    Join
	noted   func(*agent.Caller)
	idle    time.Duration // after which a silent agent's leases are released; 0: never
	active  activity
}

// newDoor makes a door of a hub.
func newDoor(open context.Context, cfg agent.Config, version string) *door {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Door, cfg.Memory = "mcp", newMemory
	return &door{
		hub: agent.NewHub(cfg), version: cmp.Or(version, "dev"), log: cfg.Log, ttl: cfg.TTL, open: open,
		noted: func(*agent.Caller) {}, deliveries: newDeliveries(),
	}
}

// server is what the protocol announces: nothing that this door does not do.
func (d *door) server() *sdk.Server {
	s := sdk.NewServer(
		&sdk.Implementation{Name: "interlock", Title: "Interlock", Version: d.version},
		&sdk.ServerOptions{
			Instructions: Instructions,
			Capabilities: &sdk.ServerCapabilities{
				Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{},
			},
			// Lists differ between versions only, but a client may reach another server by the same address.
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
				c.TTLMs, c.CacheScope = 0, "private"
			},
		},
	)
	for i := range definitions {
		s.AddTool(definitions[i].tool(), d.handle(&definitions[i]))
	}
	d.addResources(s)
	d.addPrompt(s)
	return s
}
