package remote

import (
	"context"
	"time"
)

const spaceEvery = 5 * time.Second // between two looks at the engine's space

// watchSpace keeps low up to date.
func (j *Journal) watchSpace(ctx context.Context) {
	defer close(j.watched)
	for {
		if low, err := j.store.driver.Low(ctx); err == nil {
			j.low.Store(low)
		}
		if !pause(ctx, spaceEvery) {
			return
		}
	}
}
