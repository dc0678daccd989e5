package acquire

import (
	"testing"

	"github.com/interlockdev/interlock/internal/api"
)

// A request for one of several keys goes on while one of them is not of the lease around the command.
func TestOwnLeaseOfAChoice(t *testing.T) {
	t.Setenv("INTERLOCK_FENCE", "7")
	t.Setenv("INTERLOCK_KEYS", "a\nb")
	mine, other := []api.Holder{{Key: "a", Fence: 7}}, []api.Holder{{Key: "a", Fence: 8}}
	claims := func(keys ...string) (list []api.ClaimRequest) {
		for _, key := range keys {
			list = append(list, api.ClaimRequest{Key: api.Key(key)})
		}
		return list
	}
	for _, c := range []struct {
		holders []api.Holder
		ask     api.AcquireRequest
		never   bool
	}{
		{mine, api.AcquireRequest{Claims: claims("a", "c")}, true},
		{mine, api.AcquireRequest{Claims: claims("a", "c"), Any: true}, false},
		{mine, api.AcquireRequest{Claims: claims("a", "b/below"), Any: true}, true},
		{mine, api.AcquireRequest{Prefix: "a"}, false},
		{mine, api.AcquireRequest{Prefix: "gpu:"}, false},
		{other, api.AcquireRequest{Claims: claims("a", "b"), Any: true}, false},
	} {
		if err := OwnLease(c.holders, ChoiceOf(&c.ask)); (err != nil) != c.never {
			t.Errorf("%+v of %+v: %v", c.ask, c.holders, err)
		}
	}
	if n := len(ChoiceOf(&api.AcquireRequest{Claims: []api.ClaimRequest{{Key: "a"}}})); n > 0 {
		t.Errorf("a request for all of its keys has a choice of %d", n)
	}
}
