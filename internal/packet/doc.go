// Package packet makes the conflict packet: what an agent receives when the state that it
// thought about is not the state any more.
//
// New takes what the engine found stale and returns, for each document, the version then and
// now, all its authors, with time and note, and the difference; and Message, text ready for a
// prompt. Every API that answers with a packet answers with this one.
//
// Two things hold whatever the documents and the notes are. A packet is bounded in
// size and in the work that it costs: what is cut is marked as cut, and documents
// that are too large are not compared. And in Message, what others wrote stays data:
// it stands quoted on lines of its own or in quotation marks, without a character
// that cannot be seen, and nothing in it can end the quotation.
//
// The package is pure: the same input gives the same packet.
//
// Start reading at packet.go; compare.go chooses how two bodies are compared,
// jsonpatch.go and unified.go do it, message.go writes the text and quote.go keeps
// it safe.
package packet
