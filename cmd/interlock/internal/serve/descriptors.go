package serve

// leastKeptFiles and mostKeptFiles bound the file descriptors that are reserved for other uses
// than connections: the journal, etcd, shared files and their merges, certificates, readers of
// history. Between the bounds it is a quarter of the server's descriptors.
const (
	leastKeptFiles = 48
	mostKeptFiles  = 1024
	leastConns     = 4
)

// connectionsFor returns how many connections leave enough of so many descriptors. 0 descriptors
// are no limit.
func connectionsFor(files uint64) int {
	if files == 0 || files > 1<<30 {
		return 0
	}
	n := int(files)
	return max(leastConns, n-min(max(n/4, leastKeptFiles), mostKeptFiles))
}
