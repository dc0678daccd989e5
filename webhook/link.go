package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// LinkPath is the path of the page behind a link in a message about a question. The token follows.
const LinkPath = "/v1/approve/"

// maxLink bounds how long a link can be used.
const maxLink = 7 * 24 * time.Hour

// Link is the content of a link's token: one question, one webhook, one generation of its secrets,
// and a time. It answers once, because an answered question is not open any more.
type Link struct {
	Namespace  interlock.Namespace
	Webhook    string
	Generation uint64
	Task       interlock.TaskID
	Fence      interlock.Fence // of a parked lease, instead of Task
	Asked      record.Time     // of a task: when that question was asked
	Expires    time.Time

	// Approver is the principal that confirmed the webhook's receiver, as Open found it; "": none. It is not in the
	// token.
	Approver string
}

// ErrLink is the error of a token that opens no link.
var ErrLink = errors.New("webhook: the link is not valid")

const tokenContext = "interlock approve link v1\x00"

func tokenSum(key, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(tokenContext))
	mac.Write(payload)
	return mac.Sum(nil)
}

// token returns the token of a link, signed with the webhook's key for links.
func (l *Link) token(key []byte) string {
	b := appendPart(nil, string(l.Namespace))
	b = appendPart(b, l.Webhook)
	b = append(b, l.Task[:]...)
	for _, n := range []uint64{l.Generation, uint64(l.Fence), uint64(l.Asked), uint64(l.Expires.Unix())} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, tokenSum(key, b)...))
}

func appendPart(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// maxToken bounds the length of a token.
const maxToken = 1024

// parseToken reads a token. Nothing in it is proved yet: its last bytes are the signature.
func parseToken(token string) (l Link, payload, sum []byte, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(token) > maxToken || len(raw) < sha256.Size {
		return l, nil, nil, ErrLink
	}
	payload, sum = raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	rest := payload
	part := func() string {
		if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) {
			rest = nil
			return ""
		}
		n := int(binary.BigEndian.Uint16(rest))
		s := string(rest[2 : 2+n])
		rest = rest[2+n:]
		return s
	}
	l.Namespace, l.Webhook = interlock.Namespace(part()), part()
	if len(rest) != len(l.Task)+4*8 {
		return l, nil, nil, ErrLink
	}
	copy(l.Task[:], rest)
	number := func(i int) uint64 { return binary.BigEndian.Uint64(rest[len(l.Task)+8*i:]) }
	l.Generation, l.Fence, l.Asked = number(0), interlock.Fence(number(1)), record.Time(number(2))
	l.Expires = time.Unix(int64(number(3)), 0)
	return l, payload, sum, nil
}

// LinkNamespace returns the namespace in a token before the token is verified; "" if it has none.
func LinkNamespace(token string) interlock.Namespace {
	l, _, _, _ := parseToken(token)
	return l.Namespace
}

// Open returns the link of a token. It returns ErrLink if this server never signed it, if its webhook
// was set, rotated or deleted since, or if that has no links any more. The caller checks whether the
// link has expired, because a page explains that.
func (s *Sender) Open(ctx context.Context, token string) (Link, error) {
	l, payload, sum, err := parseToken(token)
	if err != nil {
		return l, err
	}
	var w engine.WebhookView
	if _, err := s.cfg.Shard.Read(ctx, l.Namespace, func(e *engine.Engine, _ engine.Time) {
		w, _ = e.Webhook(l.Namespace, l.Webhook)
	}); err != nil {
		return l, err
	}
	if w.LinkKey == nil || !hmac.Equal(tokenSum(w.LinkKey, payload), sum) ||
		w.Generation != l.Generation || !w.ApproveLinks {
		return l, ErrLink
	}
	l.Approver = w.Approver
	return l, nil
}

// url returns the link with which a reader of a message answers its question; "" if there is none.
func (s *Sender) url(w *engine.WebhookView, l Link) string {
	if !w.ApproveLinks || s.cfg.PublicURL == "" {
		return ""
	}
	l.Webhook, l.Generation = w.Name, w.Generation
	return strings.TrimSuffix(s.cfg.PublicURL, "/") + LinkPath + l.token(w.LinkKey)
}
