package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// The addresses of the resources.
const (
	leasesURI = "interlock://leases"
	mineURI   = "interlock://leases/mine"
	keyURI    = "interlock://key/"
	taskURI   = "interlock://task/"
)

// resourceRead reads a resource. rest is what follows the beginning of its address.
type resourceRead func(ctx context.Context, c *agent.Caller, flow, rest string) (any, error)

func (d *door) addResources(s *sdk.Server) {
	const kind = "application/json"
	s.AddResource(&sdk.Resource{
		URI: leasesURI, Name: "leases", Title: "Holders and keys", MIMEType: kind,
		Description: "The leases of the namespace: holders, keys, purposes (data of other agents). The first 100.",
	}, d.resource(leasesURI, readLeases))
	s.AddResource(&sdk.Resource{
		URI: mineURI, Name: "my-leases", Title: "My leases", MIMEType: kind,
		Description: "The leases that this agent holds, and the turns that have come for it.",
	}, d.resource(mineURI, readMine))
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: keyURI + "{+key}", Name: "key", Title: "A key", MIMEType: kind,
		Description: "The holders and waiters of a key, and its whole document.",
	}, d.resource(keyURI, readKey))
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: taskURI + "{id}", Name: "task", Title: "A task or message", MIMEType: kind,
		Description: "A task or message with its whole result.",
	}, d.resource(taskURI, readTask))
}

func (d *door) resource(begin string, read resourceRead) sdk.ResourceHandler {
	return func(ctx context.Context, r *sdk.ReadResourceRequest) (result *sdk.ReadResourceResult, err error) {
		defer d.recovered("a resource", &err)
		from := d.arrived(ctx)
		ctx, cancel := context.WithTimeout(ctx, maxCall)
		defer cancel()
		defer context.AfterFunc(from.gone, cancel)()
		defer d.active.begin()()
		who := d.identify(from, r.Params.Meta, r.ClientInfo())
		rest, err := url.PathUnescape(strings.TrimPrefix(r.Params.URI, begin))
		if err != nil {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		content, err := read(ctx, d.hub.Caller(who.Identity), who.flow, rest)
		if p, ok := errors.AsType[*api.Problem](err); ok {
			if p.Status == http.StatusBadRequest || p.Status == http.StatusNotFound {
				return nil, sdk.ResourceNotFoundError(r.Params.URI)
			}
			return nil, errors.New(clip(p.Detail, detailShare))
		}
		if err != nil {
			return nil, errors.New(sentence(err))
		}
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: string(text)}}}, nil
	}
}

func readLeases(ctx context.Context, c *agent.Caller, _, _ string) (any, error) {
	return get(ctx, c, "/v1/leases", url.Values{"limit": {"100"}})
}

func readKey(ctx context.Context, c *agent.Caller, _, key string) (any, error) {
	about, err := get(ctx, c, keyPath("keys", key), nil)
	if err != nil {
		return nil, err
	}
	state, err := get(ctx, c, "/v1/state", url.Values{"key": {key}, "values": {"true"}})
	if err != nil {
		return nil, err
	}
	var list struct {
		Documents []json.RawMessage `json:"documents"`
	}
	if err := json.Unmarshal(state, &list); err != nil || len(list.Documents) != 1 {
		return nil, errors.Join(errors.New("the API returned no document"), err)
	}
	return struct {
		Key      json.RawMessage `json:"key"`
		Document json.RawMessage `json:"document"`
	}{about, list.Documents[0]}, nil
}

func readTask(ctx context.Context, c *agent.Caller, _, id string) (any, error) {
	return get(ctx, c, "/v1/tasks/"+url.PathEscape(id), nil)
}

// readMine lists what the agent has.
func readMine(ctx context.Context, c *agent.Caller, flow, _ string) (any, error) {
	type lease struct {
		Lease string   `json:"lease"`
		Keys  []string `json:"keys"`
		Held  int64    `json:"held_s"`
	}
	type turn struct {
		Ticket string   `json:"ticket"`
		Keys   []string `json:"keys"`
	}
	out := struct {
		Leases []lease `json:"leases"`
		Turns  []turn  `json:"turns"`
	}{[]lease{}, []turn{}}
	work, err := c.Work(ctx)
	if err != nil {
		return nil, err
	}
	for i := range work.Leases {
		if l := &work.Leases[i]; l.Flow == flow {
			out.Leases = append(out.Leases, lease{l.ID, agent.KeysOf(l.Claims), l.Held / 1000})
		}
	}
	for _, p := range c.News(flow) {
		out.Turns = append(out.Turns, turn{p.Ticket, p.Keys})
	}
	return out, nil
}

func get(ctx context.Context, c *agent.Caller, path string, query url.Values) (json.RawMessage, error) {
	answer, err := c.Do(ctx, api.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
