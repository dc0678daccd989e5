package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A message in Slack's form is one text. It has all that a person needs to decide, and nothing in it
// that agents wrote can become a link or a mention.
func TestSlackForm(t *testing.T) {
	deadline := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	body := &Body{Type: "approval_requested", Data: Data{
		Text: "support-2 asks: Refund <!channel> & <https://evil.example|click>?",
		Question: &Question{
			Purpose: "late delivery", Queue: "refunds", Payload: json.RawMessage(`{"cents":120000}`),
			Claims:    []Claim{{"account:7", "exclusive"}},
			Documents: []Document{{"account:7", 41}}, Principal: "support", Deadline: &deadline, AtDeadline: "denied",
		},
		Links:    &Links{Answer: "https://interlock.example/v1/approve/x"},
		Commands: []string{"interlock approval approve q_1", "interlock why 'a`b'"},
	}}
	encoded, err := encode(&engine.WebhookView{Webhook: interlock.Webhook{Format: interlock.WebhookSlack}}, body)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(encoded, &got); err != nil || len(got) != 1 {
		t.Fatalf("%v in %s", err, encoded)
	}
	want := "support-2 asks: Refund &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;?\n" +
		"Purpose: late delivery\nQueue: refunds\nPayload: {\"cents\":120000}\nKey: account:7 (exclusive)\n" +
		"Document: account:7 at version 41\nPrincipal: support\nDeadline: 2026-01-02T03:04:05Z, then denied\n" +
		"<https://interlock.example/v1/approve/x|Read and answer>\n" +
		"`interlock approval approve q_1`\n`interlock why 'a'b'`"
	if got["text"] != want {
		t.Errorf("got\n%s\nwant\n%s", got["text"], want)
	}
}

// A receiver hears of a part of the journal that was truncated before its webhook had read it, and of
// all events after that part.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.hook("ops")
		r.change("before")
		synctest.Wait()
		missed := r.shard.At().Index + 1
		r.close()

		// A term without a sender, in which the journal is truncated.
		r.config.SnapshotBytes, r.config.KeepBytes = 1, -1
		r.open()
		r.stop()
		for i := range 400 {
			r.do(&engine.SetQueue{Queue: interlock.TaskQueue{Name: "missed", MaxAttempts: i%16 + 1}})
			synctest.Wait()
		}
		first := r.shard.First()
		if first <= missed {
			t.Errorf("the journal begins at %d, and the sender has looked at all up to %d", first, missed-1)
		}
		if err := r.shard.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		r.config.SnapshotBytes = -1
		sofar := len(r.receiver.list("ops.example"))
		r.open()
		defer r.close()
		r.change("after")
		time.Sleep(time.Minute)
		list := r.receiver.list("ops.example")[sofar:]
		var gap Body
		if err := json.Unmarshal(list[0].body, &gap); err != nil || gap.Type != TypeGap || gap.Data.Gap == nil ||
			gap.Data.Gap.From > missed || gap.Data.Gap.To != first-1 || gap.Data.Text == "" {
			t.Errorf("the first message is %s, %v; the journal begins at %d", list[0].body, err, first)
		}
		last := list[len(list)-1]
		if !strings.Contains(string(last.body), "after") || last.id == list[0].id {
			t.Errorf("the last message is %s", last.body)
		}
	})
}
