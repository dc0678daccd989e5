// Package bench puts load on services that grant locks and reports what came of it.
//
//	Scenario ──► Cases ──► Run ──► Figures ──► Report
//	  cycle        one load, one target,   median, least and most
//	  hand-off     one repetition          of the repetitions
//	  ...
//
// A [Scenario] is a workload. It is written against a [Target], which is one service
// reached in one way, so that the same workload runs against Interlock through each of
// its transports and against others. Repetitions alternate between the targets: what the
// machine does besides falls on all of them.
//
// The agents run in this process and the service in another; what they share is the
// machine, so a figure is one of this machine with both on it. Figures of different
// machines, or of different runs, are not comparable; ratios within one run are.
//
// Package bench must never decide what a figure is good for: it measures, and never
// fails because something was slow. And it must never leave a server behind that it
// started.
//
// Start reading at scenario.go and target.go, then cycle.go; each scenario has a file of
// its own. interlock.go is the target that is this program.
package bench
