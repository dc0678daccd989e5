package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
)

// maxShard is the highest number of a shard.
const maxShard = 1023

// getBackup is GET /v1/admin/backup: the state of all namespaces of a shard as of one moment. It is read from
// the journal at the reader's pace. A reader that takes nothing for writeTimeout is cut off, and an
// answer that was cut off has no end, so that no reader takes it for a whole one.
func (c *call) getBackup() {
	if c.s.isDraining() {
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down: ask again in a moment")
		return
	}
	number, ok := c.intParam("shard", 0, 0, maxShard)
	if !ok {
		return
	}
	ctx, cancel := c.s.whileKnown(c.r.Context(), c.identity)
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()
	b, err := c.s.shard.Backup(ctx)
	if err != nil {
		c.failWith(err)
		return
	}
	defer b.Close()
	if c.query.Has("shard") && int(number) != b.Header.Shard {
		c.noShard(number)
		return
	}
	c.answered = true
	h := c.w.Header()
	h["Content-Type"] = []string{anyBytes}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	log := c.s.log.With("index", b.Header.Index, "principal", c.identity.name())
	log.Info("a backup is made", "snapshot", b.Header.Snapshot)
	began := time.Now()
	length, err := b.WriteTo(ctx, pace(c.w))
	if err != nil {
		if why := takenBack(ctx); why != nil {
			err = errors.Join(err, why)
		}
		log.Warn("the backup was broken off", "error", err, "bytes", length, "took", time.Since(began))
		panic(http.ErrAbortHandler)
	}
	log.Info("the backup was sent", "bytes", length, "took", time.Since(began))
}

// noShard refuses the number of a shard that the journal does not have.
func (c *call) noShard(number int64) {
	c.refuse(interlock.CodeNotFound, fmt.Sprintf("there is no shard %d in this journal: see /v1/shards", number))
}

// pacedWriter lets each write take up to writeTimeout.
type pacedWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func pace(w http.ResponseWriter) *pacedWriter { return &pacedWriter{w, http.NewResponseController(w)} }

func (p *pacedWriter) Write(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Time{})
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
