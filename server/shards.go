package server

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// listShards is GET /v1/shards. A router answers from the table of servers that it knows, and another server for
// its only shard.
func (c *call) listShards() {
	now, ok := c.boolParam("now")
	if !ok {
		return
	}
	locations, at := []Location{{Server: c.s}}, c.s.shard.At()
	var peers []Peer
	if c.s.directory != nil {
		locations, peers = c.s.directory.Locations(), c.s.directory.Peers()
	} else {
		if at, ok = c.confirm(); !ok {
			return
		}
	}
	var placed Placement
	if c.s.operations != nil {
		var err error
		if placed, err = c.s.operations.Placement(c.r.Context(), now); err != nil {
			c.failWith(err)
			return
		}
	}
	owns := map[string]int{}
	j := c.reply()
	j.openArray("shards")
	for _, l := range locations {
		owns[l.Owner]++
		j.open("")
		j.int("shard", int64(l.Shard))
		j.said("server", l.Owner)
		j.bool("here", l.Server != nil)
		j.said("store", placed.Stores[l.Shard])
		j.close()
	}
	j.closeArray()
	if len(peers) > 0 {
		j.openArray("servers")
		for _, p := range peers {
			j.open("")
			j.str("id", p.ID)
			j.str("http", p.Active.HTTP)
			j.str("grpc", p.Active.GRPC)
			j.str("version", p.Version)
			j.int("weight", int64(p.Weight))
			j.int("shards", int64(owns[p.ID]))
			j.bool("draining", p.Draining)
			if !p.Unreached.IsZero() {
				j.int("unreached_ms", time.Since(p.Unreached).Milliseconds())
			}
			if p.UnreachedBy > 0 {
				j.int("unreached_by", int64(p.UnreachedBy))
			}
			if p.Silent > 0 {
				j.ms("silent_ms", p.Silent)
			}
			j.close()
		}
		j.closeArray()
	}
	writePlacement(j, &placed)
	c.send(http.StatusOK, j, at)
}

func writePlacement(j *jsonOut, p *Placement) {
	if len(p.Moves) > 0 {
		j.openArray("moves")
		for i := range p.Moves {
			j.open("")
			writeNamespaceMove(j, &p.Moves[i])
			j.close()
		}
		j.closeArray()
	}
	if len(p.Moved) > 0 {
		j.openArray("moved")
		for _, ns := range slices.Sorted(maps.Keys(p.Moved)) {
			j.open("")
			j.str("namespace", string(ns))
			j.int("shard", int64(p.Moved[ns]))
			j.close()
		}
		j.closeArray()
	}
	if p.LastMove > 0 {
		j.decimal("last_move", p.LastMove)
	}
}
