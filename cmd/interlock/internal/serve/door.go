package serve

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/hook"
	"github.com/interlockdev/interlock/mcp"
)

// doors is the HTTP API with the doors of agents that speak another protocol. Each door makes ordinary
// calls of the API, also of one that stands by and refuses them.
type doors struct {
	api  http.Handler
	list []door
}

// door answers at a path and, if that ends in '/', below it.
type door struct {
	path    string
	handler http.Handler
	close   func()
}

func openDoors(api http.Handler, log *slog.Logger) *doors {
	protocol := mcp.NewHandler(mcp.HandlerConfig{API: api, Version: cli.Version(), Log: log})
	hooks := hook.NewHandler(hook.Config{API: api, Log: log})
	return &doors{api: api, list: []door{
		{path: "/mcp", handler: protocol, close: protocol.Close},
		{path: hook.Path, handler: hooks, close: hooks.Close},
	}}
}

func (d *doors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	for i := range d.list {
		if one := &d.list[i]; path == one.path || strings.HasSuffix(one.path, "/") && strings.HasPrefix(path, one.path) {
			one.handler.ServeHTTP(w, r)
			return
		}
	}
	d.api.ServeHTTP(w, r)
}

// close ends what the doors do by themselves. No request is under way.
func (d *doors) close() {
	for _, one := range d.list {
		one.close()
	}
}
