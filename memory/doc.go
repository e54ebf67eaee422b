// Package memory is the governed memory: what is believed, and on what
// quote. An agent can only file proposals; what becomes of them is computed
// from evidence.
//
// It is pure: no clock, no I/O, no randomness. [Handle] judges one proposal on
// a [State], a [Context] and a [Policy] and returns a [Decision]: an [Outcome]
// to tell, and one [Event] to write. [State.Apply] puts an event down. A state
// is nothing but its events applied in their order, so a log replayed on any
// machine gives the same bytes ([State.Encode], [State.Digest]), and [Recheck]
// decides each event again. [Reader] reads it.
//
// # What is kept
//
// Observations are quotes and never change. Propositions are claims: a value of a
// question about a subject. Statements say that an observation bears a claim out,
// at a level. What a claim is worth ([Standing]) is a function of the statements,
// computed when it is asked and stored nowhere, now or as of any record.
//
// # Rules
//
//	memory.r1   everything from outside is recorded as an observation first
//	memory.r2   an observation is never itself a belief of more than what it says
//	memory.r3   every proposition resolves to at least one observation
//	memory.r4   what a claim is worth is derived from evidence, never asserted
//	memory.r5   evidence counts by who said it, not by how often
//	memory.r6   contradiction replaces or contests; it deletes no history
//	memory.r7   nothing fades: what changes is said anew
//	memory.r8   an entity is made cheaply and merged by a person only
//	memory.r9   a test's outcome is read from its result
//	memory.r10  only what is borne out is established
//
// # Judging
//
// The order is: name, payload, forbidden fields, schema, provenance, policy;
// the first failure is the one code and reason of the rejection, which repeats
// nothing anybody wrote. What is normalised on the way (text tidied, a name
// linked, a claim that is there already) is listed as an effect and makes the
// outcome transformed. A rejected proposal is an event too and changes nothing
// else.
//
// # Trust
//
// Who said something is the channel's to say: evidence that Writ itself
// captured ([Captured]), what the agent attests of its one user, or the agent's
// inference. The package trusts the context it is handed, above all the label
// and the verbatim check of captured evidence, and the operator behind
// [Operate]. It trusts nothing in a payload. A claim is borne out where one
// sentence or one record holds its subject, the words of its predicate and its
// value, and nothing in it or around it asks, denies, doubts or tells. Evidence of level 0 and 1 establishes
// nothing, whatever there is of it, and moves nothing that rests on more. Of what
// is recalled, a value vouches only where it stands verbatim in an observation, at
// the label stored with that ([State.Recall]).
//
// # Erasure
//
// An event holds ids, predicates and levels and no text. What was proposed is its
// value, kept beside it. [State.Cascade] says which values an erasure takes with
// it, those of all that was refused among them; with those gone the log folds to the state that erased them live, and a
// decision that rested on one is not decided again, and says so.
//
// # Cost
//
// A proposal costs what it touches, whatever the memory holds: rows are found
// by key, and a proposal is judged on a draft that shares what it does not change.
// What it looks through for what it states is bounded.
package memory
