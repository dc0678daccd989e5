package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout is how long a person at a shell waits for the Tab key.
const completeTimeout = time.Second

// LookUp asks the server for proposals; ok is false if the server cannot answer.
func (a *App) LookUp(cmd *cobra.Command, path string, query url.Values, v any) (ok bool) {
	if FromEnvironment(cmd.Flags()) != nil || a.useContext(cmd) != nil || a.Server.Complete() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	_, answer, err := a.API().Do(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
	return err == nil && json.Unmarshal(answer, v) == nil
}
