package server

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Front is the APIs of a process with a changing role: the listeners stay, and what answers behind
// them is exchanged. A call that is under way is finished by the server that began it. Show must be
// called before any client is served.
type Front struct{ now atomic.Pointer[frontTarget] }

// frontTarget is the handler that answers.
type frontTarget struct {
	server  *Server
	http    http.Handler
	streams *Streams
}

// Show makes a server and its streams the ones that answer from now on.
func (f *Front) Show(s *Server, streams *Streams) {
	f.now.Store(&frontTarget{s, s.HTTPHandler(), streams})
}

// Server returns the current server.
func (f *Front) Server() *Server { return f.now.Load().server }

// Metrics is Server.Metrics for the current server.
func (f *Front) Metrics() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return f.Server().Metrics().Gather() })
}

// HTTPHandler is Server.HTTPHandler for the current server.
func (f *Front) HTTPHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.now.Load().http.ServeHTTP(w, r) })
}

// HTTPServer is Server.HTTPServer for a handler in front of HTTPHandler, or for that itself.
func (f *Front) HTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return newHTTPServer(handler, log)
}

// StreamServer is Streams.Server for the current server.
func (f *Front) StreamServer(security *tls.Config) *StreamServer {
	return newStreamServer(security, 0, func() *Streams { return f.now.Load().streams })
}
