// Package gates measures the gates of the single-step host and the provenance
// gate, offline: no network, no model, no clock. The gates are the product's
// own, taken from packages screen, claim and gate; nothing here decides.
//
// A case says what a gate must do and is run through it. Hand-made cases are
// files in cases/, which a person can add to without touching Go; they are part
// of the program, so that it can be evaluated anywhere. Generated cases are
// mutants of valid plans and summaries. What a mutant must be is known from how
// it was made, valid ones included, never from asking a gate: one that blocks
// everything fails here as one that lets everything pass does.
//
// The result depends on the cases, the seed and the gates alone. It is the same
// bytes on every machine.
package gates
