package interlock

import "time"

// Run is a started run of a workflow: a lease on one permit of its organisation and one
// of its workflow, where these have a cap.
type Run struct {
	Org      string
	Workflow string
	Lease    Lease
}

// DefaultRunWait is how long a start stands in line for its permits by default.
const DefaultRunWait = 2 * time.Second

// RunKeys are the keys that a run takes permits of: all of its organisation, and all of this
// workflow in it. A cap is the capacity of a pattern for them.
func RunKeys(org, workflow string) []Key {
	keys := []Key{Key("org:" + org + "/runs")}
	if workflow != "" {
		keys = append(keys, Key("org:"+org+"/workflow:"+workflow+"/runs"))
	}
	return keys
}
