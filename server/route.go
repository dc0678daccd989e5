package server

import "net/http"

// HTTPHandler is the HTTP/JSON door.
func (s *Server) HTTPHandler() http.Handler { return http.NotFoundHandler() }
