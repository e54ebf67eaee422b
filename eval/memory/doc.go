// Package memory measures the governed memory offline: no network, no model, no
// clock. It is package memory itself that is measured, on a fold of its own
// events; nothing here decides what is believed.
//
// Scenarios are files of cases/, which a person can add to without touching Go.
// They show whether the memory's rules do what they say (stage 1), whether they
// hold under stress (stage 2), and what they gain over memories without them
// (stage 3). A file says what is recorded, proposed and asked, at which hour; what
// must be believed then; and, apart from that, what is true, which no system is
// told. What is expected stands in the file and comes from the design of the
// memory, never from a run. Every system gets the same steps: the memory under
// both of its profiles, its seven ablations, and four memories without governance.
// A baseline is handed every claim ready made, so that it is measured by its rule
// and not by how well it reads.
//
// The measures are of data that are generated here from a seed: what the memory
// finds (M1), whether it believes what is so now (M2), whether an attacker can
// make it believe something else (M3), and whether it takes two names for one
// (M4). It is our own data, and a figure on it is no figure on anybody's
// benchmark. What is true of a case is known from how it was made, never from
// asking a memory. Beside it stand rules that other memories come down to: these
// are emulations of a decision rule, a few lines each, and no runs of anybody's
// product; the report says so in every row.
//
// A memory that answers nothing fails here as one that believes everything does.
// What is not measured, for want of a model or a clock, is named in the result
// ([NotMeasured]). The result depends on the scenarios, the seeds, the policies
// and the memory: it is the same bytes on every machine. The package trusts the
// scenario files, which are part of the program.
package memory
