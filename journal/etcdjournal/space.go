package etcdjournal

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	spaceEvery   = 5 * time.Second // between two looks at the cluster's space
	spaceTimeout = time.Second     // of one member's answer

	// reserveShare is the part of a member's quota that is left for operations that free
	// something: a sixteenth.
	reserveShare = 16
)

// watchSpace keeps low up to date. A member counts when it answers; the fullest decides.
func (j *Journal) watchSpace(ctx context.Context) {
	defer close(j.watched)
	ticker := time.NewTicker(spaceEvery)
	defer ticker.Stop()
	for {
		answered, low := false, false
		for _, endpoint := range j.store.client.Endpoints() {
			limit, done := context.WithTimeout(ctx, spaceTimeout)
			status, err := j.store.client.Status(limit, endpoint)
			done()
			if err == nil {
				answered = true
				low = low || runsOut(status)
			}
		}
		if answered {
			j.low.Store(low)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// runsOut judges as etcd does: by the size of the file; a part of it may be free for new data
// only after a defragmentation.
func runsOut(s *clientv3.StatusResponse) bool {
	for _, alarm := range s.Errors {
		if strings.Contains(alarm, "NOSPACE") {
			return true
		}
	}
	return s.DbSizeQuota > 0 && s.DbSize > s.DbSizeQuota-s.DbSizeQuota/reserveShare
}
