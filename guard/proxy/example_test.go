package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/proxy"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// Put a proxy before an API: it lets a call through only with a lease on the call's key.
func Example() {
	ctx := context.Background()
	interlocked, end := interlockServer(ctx)
	defer end()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "charged", r.URL.Path)
	}))
	defer api.Close()
	upstream, _ := url.Parse(api.URL)
	d, err := apiclient.New(apiclient.Config{URLs: []string{interlocked.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}

	p, err := proxy.New(proxy.Options{
		Config: &proxy.Config{Routes: []proxy.Route{
			{Methods: []string{"POST"}, Path: "/accounts/{id:int}/fees", Key: "account:{id}", Demand: proxy.DemandLease},
		}},
		API: d, Upstream: upstream, Records: io.Discard, Failed: func(err error) { fmt.Println(err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	front := httptest.NewServer(p)
	defer front.Close()

	lease, err := d.Acquire(ctx, "billing", "late fee", "account:12345", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"", lease.ID.String()} {
		call, _ := http.NewRequest(http.MethodPost, front.URL+"/accounts/12345/fees", strings.NewReader("{}"))
		if id != "" {
			call.Header.Set("Interlock-Lease", id)
		}
		answer, err := http.DefaultClient.Do(call)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		var problem struct{ Code string }
		if json.Unmarshal(body, &problem) == nil {
			fmt.Println(answer.StatusCode, problem.Code)
		} else {
			fmt.Print(answer.StatusCode, " ", string(body))
		}
	}
	// Output:
	// 428 lease_required
	// 200 charged /accounts/12345/fees
}

// interlockServer starts an Interlock server in this process.
func interlockServer(ctx context.Context) (web *httptest.Server, end func()) {
	j, err := (&memjournal.Store{}).Open(ctx)
	if err != nil {
		panic(err)
	}
	s, err := shard.Open(ctx, shard.Config{Journal: j})
	if err != nil {
		panic(err)
	}
	srv, err := server.New(server.Config{Shard: s})
	if err != nil {
		panic(err)
	}
	web = httptest.NewServer(srv.HTTPHandler())
	return web, func() { web.Close(); _ = s.Close(ctx) }
}
