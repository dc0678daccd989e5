// Package clientworld is a server in virtual time behind a pipe. The simulated worlds of the clients for Python and
// TypeScript drive it: their programs, their network and their clock are simulated, and the server is the real one.
//
// A test program is the server, because virtual time is that of a synctest bubble: it stands still while the program
// reads its next command, and goes on only when a command lets it pass.
//
//	clientworld.test -test.run=^TestServe$ -pipe < commands > answers
//
// Commands and answers are lines of JSON. A command begins a request, breaks one off, lets time pass until a request is
// answered, restarts the server over its journal, or begins a new world. Each answer has the virtual time in
// microseconds and the requests that were answered meanwhile.
//
// Start reading at [Serve].
package clientworld
