package git

import (
	"strconv"
	"strings"
)

// Option is the push option that shows a lease: git push -o interlock-lease=l_... The
// repository must have receive.advertisePushOptions.
const Option = "interlock-lease"

// maxLeases bounds how many leases a pusher may show.
const maxLeases = 64

// Shown returns the leases that a pusher shows, by push options and, where git runs on the
// pusher's own machine or its environment is let through, by INTERLOCK_LEASE.
func Shown(getenv func(string) string) (leases []string) {
	add := func(list string) {
		for id := range strings.SplitSeq(list, ",") {
			if id = strings.TrimSpace(id); id != "" && len(leases) < maxLeases {
				leases = append(leases, id)
			}
		}
	}
	count, _ := strconv.Atoi(getenv("GIT_PUSH_OPTION_COUNT")) // not set: there are none
	for i := range count {
		if name, value, _ := strings.Cut(getenv("GIT_PUSH_OPTION_"+strconv.Itoa(i)), "="); name == Option {
			add(value)
		}
	}
	add(getenv("INTERLOCK_LEASE"))
	return leases
}
