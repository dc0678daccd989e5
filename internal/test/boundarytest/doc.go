// Package boundarytest lets random agents work in workspaces and hand their work in, with the real commands, the real
// git and a real merger, and compares what comes out with a naive model.
//
// A world is a repository, a merger and a few agents. An agent edits, commits, amends, stashes, resets, hides files
// from git, submits, withdraws, takes the target in, deletes its workspace, and breaks things on purpose. Each line
// that it writes has a word of its own, a token, so that the model needs no git to know what work there is. The model
// knows what must hold:
//
//   - No work is lost: what a workspace had when it was deleted is in the repository, or the command was refused.
//   - Nothing lands unchecked: each tree of the target has passed its check, and is what git itself makes of the
//     landing's two sides.
//   - Every submission ends once: landed, returned, withdrawn or superseded; the target has each landed one once.
//   - The line has an order: a submission lands before later ones, with a priority before those that wait without, what
//     builds on another one after that one, and in a freeze only what is excepted.
//   - Nothing outside changes: neither a folder beside the workspaces, nor the checkout that they were made from.
//   - An agent that did nothing odd is never refused.
//
// Start reading at world_test.go.
package boundarytest
