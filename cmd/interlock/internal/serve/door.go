package serve

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/hook"
	"github.com/interlockdev/interlock/mcp"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/web"
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

// logins lets browsers in, with the dashboard; nil: without it. disk lets hooks look at this machine's disk.
func openDoors(api http.Handler, logins *server.Logins, disk bool, log *slog.Logger) (*doors, error) {
	protocol := mcp.NewHandler(mcp.HandlerConfig{API: api, Version: cli.Version(), Unread: server.Unread, Log: log})
	hooks := hook.NewHandler(hook.Config{API: api, Disk: disk, Log: log})
	d := &doors{api: api, list: []door{
		{path: "/mcp", handler: protocol, close: protocol.Close},
		{path: hook.Path, handler: hooks, close: hooks.Close},
	}}
	if logins == nil {
		return d, nil
	}
	d.api = logins.Handler(api)
	dashboard, err := web.Handler()
	if err != nil {
		return nil, err
	}
	leave := func() {}
	to := http.RedirectHandler(web.Path, http.StatusFound)
	d.list = append(
		d.list,
		door{path: server.SessionPath, handler: d.api, close: leave},
		door{path: web.Path, handler: dashboard, close: leave},
		door{path: strings.TrimSuffix(web.Path, "/"), handler: to, close: leave},
		door{path: "/", handler: rootFor(d.api, to), close: leave},
	)
	return d, nil
}

// rootFor answers at / with the way to the dashboard for browsers, and as the API for programs.
func rootFor(api, dashboard http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && web.WantsPage(r) {
			dashboard.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

func (d *doors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	for i := range d.list {
		one := &d.list[i]
		below := len(one.path) > 1 && strings.HasSuffix(one.path, "/") && strings.HasPrefix(path, one.path)
		if below || path == one.path {
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
