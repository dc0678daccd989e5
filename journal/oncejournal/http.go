package oncejournal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// mostBytes bounds an answer: a page of records is far smaller.
const mostBytes = 64 << 20

// atOnce bounds the requests of one read to a store that answers one name at a time.
const atOnce = 64

// newClient makes a client of a store, by way of a proxy if the environment names one. It follows no redirection,
// because a signature is for one host.
func newClient() *http.Client { return newClientBy(http.ProxyFromEnvironment) }

// newLocalClient makes a client of an endpoint of the machine. No proxy can answer for that.
func newLocalClient() *http.Client { return newClientBy(nil) }

func newClientBy(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 proxy,
			DialContext:           (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 10 * time.Second}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   atOnce,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   2 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what a store said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and reads the whole answer.
func send(client *http.Client, r *http.Request) (a answer, err error) {
	got, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer got.Body.Close()
	a.status, a.header = got.StatusCode, got.Header
	a.body, err = io.ReadAll(io.LimitReader(got.Body, mostBytes+1))
	if len(a.body) > mostBytes {
		err = errors.New("the answer is too large")
	}
	return a, err
}

// fetch gets a small text, such as a token, from an endpoint of the machine.
func fetch(
	ctx context.Context, client *http.Client, method, address string, header map[string]string,
) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	a, err := send(client, r)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("%s answered with %d", r.URL.Host, a.status)
	}
	return bytes.TrimSpace(a.body), nil
}

// each calls do with the numbers below n, several at a time, and returns an error of one.
func each(n int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
