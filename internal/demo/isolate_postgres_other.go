//go:build !unix

package demo

import "context"

// postgres is a server of the scene. This system has none.
type postgres struct{}

func startPostgres(context.Context) (*postgres, error) { return nil, nil }

func (*postgres) stop() error { return nil }

func (*postgres) psql() string { return "" }

func (*postgres) url(string) string { return "" }

func (*postgres) environ() []string { return nil }
