package remote

import (
	"context"
	"time"
)

const spaceEvery = 5 * time.Second // between two looks at the engine's space

// watchSpace keeps low up to date until ctx ends.
func (j *Journal) watchSpace(ctx context.Context) (done <-chan struct{}) {
	return j.store.around.Every(ctx, spaceEvery, func() {
		if low, err := j.store.driver.Low(ctx); err == nil {
			j.low.Store(low)
		}
	})
}
