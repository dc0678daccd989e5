package etcdjournal

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	spaceTimeout = time.Second // of one member's answer

	// reserveShare is the part of a member's quota that is left for operations that free
	// something: a sixteenth.
	reserveShare = 16
)

// Low implements remote.Driver. A member counts when it answers; the fullest decides.
func (d *driver) Low(ctx context.Context) (low bool, err error) {
	answered := false
	for _, endpoint := range d.client.Endpoints() {
		limit, done := context.WithTimeout(ctx, spaceTimeout)
		var status *clientv3.StatusResponse
		status, err = d.client.Status(limit, endpoint)
		done()
		if err == nil {
			answered = true
			low = low || runsOut(status)
		}
	}
	if answered {
		return low, nil
	}
	return false, explain(err)
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
