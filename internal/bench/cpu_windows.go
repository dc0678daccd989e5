package bench

import "time"

// ownCPU is the processor time that this process has used, that is the agents. It is not measured here: no server of
// a benchmark starts on Windows, because its journal is a directory.
func ownCPU() time.Duration { return 0 }
