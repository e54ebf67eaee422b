// Package memory is the governed memory: what is believed, and on what
// support. An agent can only file proposals; what becomes of them is computed
// from evidence.
//
// It is pure: no clock, no I/O, no randomness. [Handle] judges one proposal on
// a [State], a [Context] and a [Policy] and returns a [Decision]: an [Outcome]
// to tell, and one [Event] to write. [State.Apply] puts an event down. A state
// is nothing but its events applied in their order, so a log replayed on any
// machine gives the same bytes ([State.Encode], [State.Digest]), and [Recheck]
// decides each event again.
//
// # Layers
//
// Observations are evidence and never change. Propositions are claims of one
// task's workspace, with a state (tentative, provisional, accepted, contested,
// deprecated, rejected) that follows from their evidence alone. Canonical
// memory is what a consolidation promoted; no tool writes to it.
//
// # Rules
//
//	memory.r1   everything from outside is recorded as an observation first
//	memory.r2   an observation is never itself a belief
//	memory.r3   every proposition resolves to at least one observation
//	memory.r4   a state is derived from evidence, never asserted
//	memory.r5   evidence is weighed by the quality and independence of sources, not by count
//	memory.r6   contradiction lowers or contests; it deletes no history
//	memory.r7   what changes decays unless it is refreshed
//	memory.r8   an entity is made cheaply and merged by a person only
//	memory.r9   a test is proposed only when uncertainty matters
//	memory.r10  only what was consolidated is promoted
//
// # Judging
//
// The order is: name, payload, forbidden fields, schema, provenance, policy;
// the first failure is the one code and reason of the rejection, which repeats
// nothing anybody wrote. What is normalised on the way (text tidied, numbers
// clamped, defaults of a predicate, a name linked, a claim that is there
// already) is listed as an effect and makes the outcome transformed. A rejected
// proposal is an event too and changes nothing else.
//
// # Trust
//
// Who said something is the channel's to say: evidence that Writ itself
// captured ([Captured]), what the agent attests of its one user, or the agent's
// inference. The package trusts the context it is handed, above all the label
// and the verbatim check of captured evidence, and the operator behind
// [Operate]. It trusts nothing in a payload. Under the profile v1, evidence of
// level 0 and 1 makes nothing usable, whatever there is of it, and contradicts
// nothing that rests on more. Of what is recalled, a value vouches only where it
// stands verbatim in a supporting observation, at the label stored with that
// ([State.Recall]).
//
// An observation supports a claim in full only if it has in it what the claim
// states; else it counts as the agent's inference. It contradicts a claim only
// with another value of the same question in it, and the outcome of a test counts
// only where the value stands in what was observed. What one piece of evidence
// says counts once, under however many ids it is recorded, and numbers of
// evidence, not clocks, tell which statement is the newer.
//
// # Numbers
//
// Scores, weights and thresholds are whole millionths ([Micro]), rounded half
// to even; where floating point could decide a rounding, exact arithmetic does.
// Every constant stands in the policy. Two are built in: v1, and v01q, the
// figures of the design this memory grew out of, with 600 golden vectors.
//
// # Erasure
//
// An event holds ids, states and scores and no text. What was proposed is its
// value, kept beside it. [State.Cascade] says which values an erasure takes with
// it, those of all that was refused among them; with those gone the log folds to the state that erased them live, and a
// decision that rested on one is not decided again, and says so.
//
// # Cost
//
// A proposal costs what it touches, whatever the memory holds: rows are found
// by key, evidence is tallied by group as it comes, and a proposal is judged on
// a draft that shares what it does not change. What it looks through for what it
// states is bounded.
package memory
