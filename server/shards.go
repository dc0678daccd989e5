package server

import "net/http"

// listShards is GET /v1/shards. A router answers from the table of servers that it knows, and another server for
// its only shard.
func (c *call) listShards() {
	locations, at := []Location{{Server: c.s}}, c.s.shard.At()
	var peers []Peer
	if c.s.directory != nil {
		locations, peers = c.s.directory.Locations(), c.s.directory.Peers()
	} else {
		var ok bool
		if at, ok = c.confirm(); !ok {
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
			j.close()
		}
		j.closeArray()
	}
	if c.s.operations != nil {
		if moves := c.s.operations.Moves(); len(moves) > 0 {
			j.openArray("moves")
			for i := range moves {
				j.open("")
				writeNamespaceMove(j, &moves[i])
				j.close()
			}
			j.closeArray()
		}
	}
	c.send(http.StatusOK, j, at)
}
