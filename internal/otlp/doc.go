// Package otlp pushes to a collector of OpenTelemetry, in OTLP over HTTP. It needs no SDK.
//
//	metrics  gather ──► convert ──► protobuf, gzip ──► POST /v1/metrics
//	spans    JSON, as internal/spans writes it, gzip ──► POST /v1/traces
//
// Metrics are what a scrape of /metrics would see, every so often. All numbers are cumulative, so a push that fails is
// not repeated: the next one has its numbers, too. Failures are counted by interlock_otlp_pushes_total, and logged
// when they begin and when they end. Spans are posted by a command that waits for the answer, and repeats them.
//
// Package otlp must never make a caller of the server wait for the collector, and never send a header to another
// address than the configured one, since headers are credentials.
//
// Start reading at push.go; convert.go maps the metrics of Prometheus to those of OpenTelemetry, send.go posts.
package otlp
