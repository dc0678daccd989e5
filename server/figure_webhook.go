package server

import "github.com/prometheus/client_golang/prometheus"

// newWebhookFigures makes the figures about messages of webhooks, of all namespaces together.
func (o *Observer) newWebhookFigures() {
	o.figures.webhooks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_webhook_deliveries_total",
		Help: "Messages of webhooks that were delivered or given_up, and attempts that failed.",
	}, []string{"outcome"})
	for _, outcome := range []string{"delivered", "failed", "given_up"} {
		o.figures.webhooks.WithLabelValues(outcome)
	}
	o.figures.registry.MustRegister(o.figures.webhooks, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "interlock_webhook_backlog",
		Help: "Webhooks with a message that was tried and is not delivered.",
	}, func() float64 {
		if s := o.sender.Load(); s != nil {
			n, _ := s.Backlog()
			return float64(n)
		}
		return 0
	}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "interlock_webhook_backlog_seconds",
		Help: "Age of the oldest event with a message that was tried and is not delivered.",
	}, func() float64 {
		if s := o.sender.Load(); s != nil {
			_, oldest := s.Backlog()
			return oldest.Seconds()
		}
		return 0
	}))
}

// webhook counts messages and attempts.
func (f *figures) webhook(outcome string, n int) { f.webhooks.WithLabelValues(outcome).Add(float64(n)) }
