// Command interlock-sim runs simulated worlds and checks that every promise holds in
// them. A seed that fails once fails always.
//
//	interlock-sim -seeds 0..99       run these seeds, and print what they met
//	interlock-sim -seed 17           run one, and print its story: actions and faults
//	                                 came, what was decided, and what was broken
//	interlock-sim -long 8h           go on behind the last seed for a night
//
// It must never decide anything itself: what a run does is in package sim. Start reading
// at main.go.
package main
