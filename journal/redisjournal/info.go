package redisjournal

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/journal/remote"
)

// server is what a server tells of itself.
type server struct {
	version  string // of Redis, or that Valkey is compatible with
	primary  bool
	id       string // of its replication: another one after a promotion or a restart
	replicas int    // which are connected
	appends  bool   // to a file
	used     int64  // bytes of memory
	most     int64  // 0 is no bound
}

// parseServer reads the answer of INFO. What is missing stays zero.
func parseServer(info string) (s server) {
	for line := range strings.SplitSeq(info, "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "redis_version":
			s.version = value
		case "role":
			s.primary = value == "master"
		case "master_replid":
			s.id = value
		case "connected_slaves":
			s.replicas, _ = strconv.Atoi(value)
		case "aof_enabled":
			s.appends = value == "1"
		case "used_memory":
			s.used, _ = strconv.ParseInt(value, 10, 64)
		case "maxmemory":
			s.most, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return s
}

// least reports whether the version is at least a certain one.
func (s *server) least(major, minor int) bool {
	first, rest, _ := strings.Cut(s.version, ".")
	second, _, _ := strings.Cut(rest, ".")
	m, _ := strconv.Atoi(first)
	n, _ := strconv.Atoi(second)
	return m > major || m == major && n >= minor
}

// majority is how many replicas form, with the primary, most of the servers.
func (s *server) majority() int { return (s.replicas + 1) / 2 }

// syncs reports whether the server knows what its replicas have synced.
func (s *server) syncs() bool { return s.appends && s.least(7, 2) }

// synced reads the answer of WAITAOF: how many replicas have synced a write, if the primary has.
func synced(answer any) (replicas int64, err error) {
	list, _ := answer.([]any)
	if len(list) != 2 {
		return 0, fmt.Errorf("redis: %w", errProtocol)
	}
	if local, _ := list[0].(int64); local == 0 {
		return 0, nil
	}
	replicas, _ = list[1].(int64)
	return replicas, nil
}

// setting is one that a journal wants.
type setting struct{ name, want, remedy string }

var settings = []setting{
	{"appendonly", "yes", "set appendonly yes"},
	{"appendfsync", "always", "set appendfsync always"},
	{"no-appendfsync-on-rewrite", "no", "set no-appendfsync-on-rewrite no"},
	{"maxmemory-policy", "noeviction", "set maxmemory-policy noeviction"},
}

// old refuses a server of an early version.
func (d *driver) old(c *conn) error {
	return remote.Final(fmt.Errorf(
		"redis: %s has version %q: want Redis 7.0 or later, or Valkey", c.addr, c.server.version,
	))
}

// checkSettings returns what the server tells of itself, and refuses one that may forget what it has acknowledged.
func (d *driver) checkSettings(ctx context.Context) (now server, err error) {
	ask := command{"CONFIG", "GET"}
	for _, s := range settings {
		ask = append(ask, s.name)
	}
	answers, err := d.send(ctx, command{"INFO"}, ask)
	if err != nil {
		return now, err
	}
	if r, refused := answers[0].(refusal); refused {
		return now, explain(r)
	}
	now = parseServer(text(answers[0]))
	d.seen(&now)
	refuse := func(is, remedy string) error {
		return remote.Final(fmt.Errorf(
			"redis: %w: %s: %s, or accept it with --allow-loss", remote.ErrUnsafe, is, remedy,
		))
	}
	list, allowed := answers[1].([]any)
	switch {
	case d.at.AllowLoss:
		return now, nil
	case d.at.Replicas == 0 && now.replicas > 0:
		return now, refuse("replicas=0 although there are replicas", "leave the parameter replicas out")
	case !allowed:
		return now, refuse("this user may not read its settings", "allow it CONFIG GET")
	}
	is := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		is[text(list[i])] = text(list[i+1])
	}
	for _, s := range settings {
		if is[s.name] != s.want {
			return now, refuse(fmt.Sprintf("%s is %q", s.name, is[s.name]), s.remedy)
		}
	}
	return now, nil
}
