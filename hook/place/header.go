package place

import "github.com/interlockdev/interlock/hook/region"

// The headers in which interlock-hook names the origin of an event.
const (
	// HeaderRoot is the top folder of the checkout that the agent works in. It may stand twice: as the agent
	// spells it, and with all links followed.
	HeaderRoot = "X-Interlock-Root"
	// HeaderRepo is the name of its repository, as Checkout has it.
	HeaderRepo = "X-Interlock-Repo"
	// HeaderHost is the name of the machine.
	HeaderHost = "X-Interlock-Host"
	// HeaderPlaces has the Locations of paths, a JSON object by the paths. A sender that has it can be asked for more of
	// them: see Asked.
	HeaderPlaces = "X-Interlock-Places"
	// HeaderLease has the secret ids of the leases around the agent's process, the innermost first, with blanks between.
	HeaderLease = "X-Interlock-Lease"
)

// Asked is an answer that asks where paths lead, which the server cannot see. The sender repeats the event with
// HeaderPlaces. Edit, if it is there, is what the event does to the file at each of the paths: the answer tells of the
// region.
type Asked struct {
	Places []string     `json:"places"`
	Edit   *region.Edit `json:"edit,omitempty"`
}
