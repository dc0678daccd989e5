package place

// The headers in which interlock-hook names the origin of an event.
const (
	// HeaderRoot is the top folder of the checkout that the agent works in. It may stand twice: as the agent
	// spells it, and with all links followed.
	HeaderRoot = "X-Interlock-Root"
	// HeaderRepo is the name of its repository, as Checkout has it.
	HeaderRepo = "X-Interlock-Repo"
	// HeaderHost is the name of the machine.
	HeaderHost = "X-Interlock-Host"
	// HeaderLease has the secret ids of the leases around the agent's process, the innermost first, with blanks between.
	HeaderLease = "X-Interlock-Lease"
)
