package server

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal/backup"
)

// A backup is whole, and is not for the operator of one tenant.
func TestBackup(t *testing.T) {
	d := newDoor(t)
	d.acquire("a", "k")
	got := d.get("/v1/admin/backup").want(200)
	h, length, err := backup.Check(t.Context(), strings.NewReader(got.raw), "answer")
	if err != nil || length != int64(len(got.raw)) || h.Index != d.shard.At().Index {
		t.Errorf("%+v, %d of %d bytes, %v", h, length, len(got.raw), err)
	}
	if kind := got.header.Get("Content-Type"); kind != anyBytes {
		t.Errorf("content type %q", kind)
	}
	d.send(d.request("HEAD", "/v1/admin/backup", "")).want(405)
	d.server.Drain()
	d.get("/v1/admin/backup").want(503, "shutting_down")
}

// A reader that stands still has the only place for a backup, and holds up no caller. It is cut off
// in the end, without the end of a backup, and the next one is made.
func TestBackupReaderStandsStill(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.loose = true
		large := strings.Repeat("x", 100_000)
		for _, key := range []string{"a", "b", "c"} {
			d.send(d.request("PUT", "/v1/state/"+key, `"`+large+`"`, "Content-Type", "application/json")).want(200)
		}
		conn := d.listen()()
		if _, err := io.WriteString(conn, "GET /v1/admin/backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReaderSize(conn, 64)
		if _, err := reader.Peek(64); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.get("/v1/admin/backup").want(503, "overloaded")
		d.acquire("a", "k")
		<-time.After(writeTimeout + time.Second) // by the bubble's clock
		rest, err := io.ReadAll(reader)
		if strings.Contains(string(rest), "end.") || len(rest) > 200_000 {
			t.Errorf("%d bytes of a backup that was cut off, %v", len(rest), err)
		}
		d.get("/v1/admin/backup").want(200)
	})
}
