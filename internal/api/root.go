package api

// Root is the answer of GET /: where things are. It needs no credential, and shows nothing of a tenant.
type Root struct {
	Name    string `json:"name" enum:"interlock"`
	Version string `json:"version"`
	Links   Links  `json:"links"`
}

// Links are the first paths to know, on the same server, and the address of the documentation.
type Links struct {
	// The OpenAPI document.
	OpenAPI string `json:"openapi"`
	// The guide for agents, of at most 1,000 tokens.
	Guide string `json:"guide"`
	// Whether the process is alive.
	Health string `json:"health"`
	// Whether the server admits new work.
	Ready string `json:"ready"`
	// The state of the server and of the caller's namespace; like what follows, it may need a credential.
	Status string `json:"status"`
	// The settings and quotas of the caller's namespace.
	Namespace string `json:"namespace"`
	// The leases of the namespace; POST acquires one.
	Leases string `json:"leases"`
	// The holders and waiters of keys.
	Keys string `json:"keys"`
	// The same for agents that speak the Model Context Protocol, where interlock serve answers.
	MCP  string `json:"mcp"`
	Docs URI    `json:"docs"`
}
