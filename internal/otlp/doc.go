// Package otlp pushes metrics to a collector of OpenTelemetry, in OTLP over HTTP: what a scrape of /metrics would see,
// every so often. It needs no SDK, because Prometheus' registry has already counted everything.
//
//	gather ──► convert ──► protobuf, gzip ──► POST /v1/metrics
//
// All numbers are cumulative, so a push that fails is not repeated: the next one has its numbers, too. Failures are
// counted by interlock_otlp_pushes_total, and logged when they begin and when they end.
//
// Package otlp must never make a caller wait for the collector, and never send a header to another address than the
// configured one, since headers are credentials.
//
// Start reading at push.go; convert.go maps the metrics of Prometheus to those of OpenTelemetry.
package otlp
