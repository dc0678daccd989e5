package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

const PageSize = 1000 // as many as the server returns at once

// Pages reads a listing page after page, up to limit rows, and reports whether there are
// more. With -o json each page is printed as it came.
func (a *App) Pages(
	ctx context.Context, path string, query url.Values, limit int,
	read func(answer []byte) (shown int, cursor string, err error),
) (more bool, err error) {
	client := a.API()
	for left := limit; left > 0; {
		query.Set("limit", strconv.Itoa(min(PageSize, left)))
		_, answer, err := client.Do(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
		if _, err := a.RawAnswer(answer, err); err != nil {
			return false, err
		}
		shown, cursor, err := read(answer)
		if err != nil {
			return false, fmt.Errorf("the answer cannot be read (%w): is this client older than the server?", err)
		}
		left -= shown
		if cursor == "" {
			return false, nil
		}
		query.Set("cursor", cursor)
	}
	return true, nil
}
