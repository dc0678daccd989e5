package top

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/feed"
	"github.com/interlockdev/interlock/internal/api"
)

const overviewPath = "/v1/overview"

const (
	maxPicture = 16 << 20         // bytes; one has at most 200 keys and 500 edges
	silence    = 20 * time.Second // the server sends a picture each 5 s at least
)

var errCut = errors.New("the connection ended")

// follow passes on pictures until ctx ends, across restarts and fail-overs. tell is called with the reason while
// there are none. It returns an error that a new connection would not help against.
func follow(ctx context.Context, a *cli.App, show func(raw []byte) error, tell func(why error)) error {
	var pace *client.Backoff
	for {
		came := false
		err := pictures(ctx, a, func(raw []byte) error {
			came = true
			return show(raw)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, errCut) && !feed.ComesBack(err):
			return err
		}
		if pace == nil || came {
			pace = &client.Backoff{Least: 250 * time.Millisecond, Most: 5 * time.Second}
		}
		tell(err)
		if pace.Wait(ctx, cli.RetryAfter(err)) != nil {
			return nil
		}
	}
}

// pictures reads one stream.
func pictures(ctx context.Context, a *cli.App, show func(raw []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := cli.Request{
		Method: http.MethodGet, Path: overviewPath, Header: http.Header{"Accept": {"text/event-stream"}},
	}
	res, err := a.API().Client.Send(ctx, req)
	if err != nil {
		return a.API().Explain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _, err := a.API().Do(ctx, req) // once more, to read the refusal whole
		if err == nil {
			err = errCut
		}
		return err
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return cli.Usagef("there is no stream of pictures here: use --frames 1")
	}
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), maxPicture)
	var kind string
	for lines.Scan() {
		watch.Reset(silence)
		text := lines.Bytes()
		if name, ok := bytes.CutPrefix(text, []byte("event: ")); ok {
			kind = string(name)
		}
		data, ok := bytes.CutPrefix(text, []byte("data: "))
		switch {
		case !ok:
		case kind == "picture":
			if err := show(data); err != nil {
				return err
			}
		case kind == "end":
			var end api.StreamEnd
			if err := json.Unmarshal(data, &end); err != nil {
				return fmt.Errorf("the end of the stream cannot be read: %w", err)
			}
			advice := interlock.Advice{Message: end.Advice.Message}
			return &interlock.Error{Code: end.Code, Message: end.Detail, Advice: advice}
		}
	}
	return errCut
}
