package serve

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/otlp"
)

// leastOTLPInterval keeps a mistake from flooding a collector.
const leastOTLPInterval = time.Second

// checkOTLP makes sense of the flags and of the variables that OpenTelemetry has for them.
func (c *serveConfig) checkOTLP() error {
	if c.OTLPInterval < leastOTLPInterval {
		return cli.Usagef("--otlp-interval %v: want at least %v", c.OTLPInterval, leastOTLPInterval)
	}
	if c.OTLPMetrics == "" {
		return nil
	}
	endpoint, err := otlp.ParseEndpoint(c.OTLPMetrics, otlp.MetricsPath)
	if err != nil {
		return cli.Usagef("--otlp-metrics: %w", err)
	}
	headers, resource, err := otlp.Environment("METRICS", cli.Version())
	if err != nil {
		return cli.Usagef("%w", err)
	}
	c.otlp = &otlp.Config{
		Endpoint: endpoint, Headers: headers, Every: c.OTLPInterval, Resource: resource, Version: cli.Version(),
	}
	return nil
}

// preparePushing makes what pushes the metrics of the server that answers at the time, if they are to be pushed.
func (p *process) preparePushing() {
	p.stopPushing = func() {}
	if p.cfg.otlp == nil {
		return
	}
	cfg := *p.cfg.otlp
	cfg.Log, cfg.Metrics = p.log, p.front.Metrics()
	p.pusher = otlp.New(cfg)
}

// startPushing begins to push. Listeners are open.
func (p *process) startPushing() {
	if p.pusher == nil {
		return
	}
	const instance = "service.instance.id"
	if resource := p.cfg.otlp.Resource; resource[instance] == "" {
		resource[instance] = instanceOf(p.http.Addr())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.pusher.Run(ctx)
	}()
	p.stopPushing = func() {
		cancel()
		<-ended
	}
}

// instanceOf names a server among others: by its machine, or pod, and its port.
func instanceOf(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if name, err := os.Hostname(); err == nil {
		host = name
	}
	return net.JoinHostPort(host, port)
}
