package webhook

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// TestLinkEnds: a link ends with the answer to a change of its webhook, before a
// worker has seen that change.
func TestLinkEnds(t *testing.T) {
	key := bytes.Repeat([]byte("n"), record.WebhookKeyBytes)
	for name, change := range map[string]func(*rig){
		"rotated": func(r *rig) { r.do(&engine.RotateWebhook{Name: "ops", Secret: key, LinkKey: key}) },
		"deleted": func(r *rig) { r.do(&engine.DeleteWebhook{Name: "ops"}) },
		"no links any more": func(r *rig) {
			r.hook("ops", func(w *interlock.Webhook) { w.ApproveLinks = false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				defer r.close()
				r.hook("ops", func(w *interlock.Webhook) { w.ApproveLinks = true })
				w := r.view("ops")
				l := Link{Namespace: "acme", Webhook: "ops", Generation: w.Generation, Fence: 1}
				token := l.token(w.LinkKey)
				if got, err := r.sender.Open(r.Context(), token); err != nil || got.Fence != 1 {
					t.Fatalf("before the change: %+v, %v", got, err)
				}
				change(r)
				if _, err := r.sender.Open(r.Context(), token); !errors.Is(err, ErrLink) {
					t.Errorf("after the change: %v", err)
				}
			})
		})
	}
}
