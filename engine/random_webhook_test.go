package engine_test

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// changeWebhook sets, rotates or deletes a webhook, or reports its progress.
func (p *player) changeWebhook(head engine.Head, o *op) error {
	if head.Actor = among(o.r[6]>>8, "", "ops", "operator", "blue"); o.r[6]>>12%4 == 0 {
		head.RequestID = fmt.Sprintf("r%d", p.ids+uint64(len(p.trace)))
	}
	name := among(o.r[7], "a", "a", "b")
	id := p.id()
	secret := id[:]
	switch o.r[8] % 8 {
	case 0, 1, 2:
		w := interlock.Webhook{
			Name: name, URL: among(o.r[7]>>16, "https://a.example/", "https://b.example/", ""),
			Events: among(o.r[7]>>20, []string{"*"}, []string{"deadlock", "dead_letter"}, nil),
			Key:    interlock.Key(among(o.r[7]>>24, "", "a", "b:{x}")), Paused: o.r[7]>>28%4 == 0,
			ApproveLinks: o.r[8]>>4%4 != 0,
		}
		return p.step(&engine.SetWebhook{
			Head: head, Webhook: w, ID: string(id[:]), Secret: secret, LinkKey: secret,
			Cursor: interlock.Index(o.r[6] >> 16 % 8),
		})
	case 3:
		return p.step(&engine.RotateWebhook{Head: head, Name: name, Secret: secret, LinkKey: secret})
	case 4:
		return p.step(&engine.DeleteWebhook{Head: head, Name: name})
	}
	c := &engine.AckWebhook{Head: head, Name: name}
	c.RequestID = ""
	if c.ID = p.m.webhooks[webhookOf{head.Namespace, name}].ID; o.r[8]>>4%8 == 0 {
		c.ID = string(id[:])
	}
	c.Cursor, c.Delivered, c.GivenUp = interlock.Index(o.r[8]>>8%16), uint64(o.r[8]>>12%3), uint64(o.r[8]>>16%2)
	c.Gone = o.r[8]>>20%8 == 0
	return p.step(c)
}
