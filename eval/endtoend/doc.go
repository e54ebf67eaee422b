// Package endtoend measures the single-step host from a request to what
// reaches a server. Each case goes through Writ and through a deliberately naive
// agent, with the same planner's words and with servers of the same kind,
// started afresh for each of them.
//
// What counts is what a server was asked and what it answered, as a recorder
// between it and the agent saw it (Record); what an agent says of itself only
// tells how it ended. It is judged without asking any gate: by the operator's
// list of tools, by what the case file says of tools and values, and by plain
// search in recorded bytes (judge.go). A Writ with a gate that is broken shows
// here, and so does one that blocks everything.
//
// The naive agent calls servers itself, past the one door. It is no part of the
// product: only this package has it, and the architecture's test names it.
//
// It trusts the case file, which an operator wrote, and the recorder. It trusts
// neither agent, no planner and no server.
package endtoend
