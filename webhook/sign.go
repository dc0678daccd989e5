package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

const secretPrefix = "whsec_"

// Secret returns the secret of a webhook as its receiver configures it.
func Secret(w *engine.WebhookView) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(w.Secret)
}

// signatures returns the header webhook-signature: one signature for each secret in use.
func signatures(w *engine.WebhookView, id string, at time.Time, body []byte) string {
	keys := [][]byte{w.Secret}
	if w.FormerUntil != 0 && record.Time(at.UnixNano()) < w.FormerUntil {
		keys = append(keys, w.Former)
	}
	list := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		list[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(list, " ")
}

// idOf returns the id of a message: always the same for the same event and webhook, and another
// one for any other. at is the event's time: a journal that was restored from a backup uses
// indexes again.
func idOf(w *engine.WebhookView, index interlock.Index, ordinal int, at record.Time) string {
	b := append([]byte(nil), w.ID...)
	for _, n := range []uint64{uint64(index), uint64(ordinal), uint64(at)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
