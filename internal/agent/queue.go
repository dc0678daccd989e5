package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/api"
)

// A request that has to wait carries an Idempotency-Key made of its body: another process of the same agent finds the
// ticket by making the same request again.

// maxPlaces bounds how many tickets with the same request are tried: those before the last one are over.
const maxPlaces = 1000

// enqueue requests a lease that is not to be had now. The ticket of the same request is found again.
func (c *Caller) enqueue(ctx context.Context, r api.AcquireRequest) (reply *Reply, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	for n := range maxPlaces {
		answer, err := c.Do(ctx, api.Request{
			Method: http.MethodPost, Path: "/v1/leases", Body: r, ID: digest("place", string(body), strconv.Itoa(n)),
		})
		found := answer != nil && answer.Header.Get("Idempotency-Replayed") != ""
		reply, err = replyOf(answer, err)
		if err != nil || reply.Refused == nil || !found {
			return reply, err
		}
	}
	return reply, nil
}

// canonical brings a request into one form, whatever its client left out.
func canonical(r api.AcquireRequest) api.AcquireRequest {
	r.Flow = cmp.Or(r.Flow, mainFlow)
	r.Claims = slices.Clone(r.Claims)
	for i := range r.Claims {
		if r.Claims[i].Count == (api.Count{}) {
			r.Claims[i].Mode = cmp.Or(r.Claims[i].Mode, "exclusive")
		}
	}
	slices.SortFunc(r.Claims, func(a, b api.ClaimRequest) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return r
}
