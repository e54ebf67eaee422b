// Package measures measures the governed memory offline: what it finds (M1),
// whether it believes what is so now (M2), whether an attacker can make it
// believe something else (M3), and whether it takes two names for one (M4). No
// network, no model, no clock.
//
// The memory is the product's own: proposals go through memory.Handle with
// captured evidence, answers come from memory.Reader with its default
// arguments, texts are found by the index that is handed in. Nothing here
// decides what is believed. Beside it stand rules that other memories come down
// to. These are emulations of a decision rule, a few lines each, and no runs of
// anybody's product; the report says so in every row.
//
// What is measured is generated here, from a seed: it is our own data, and a
// figure on it is no figure on anybody's benchmark. What is true of a case is
// known from how it was made, never from asking a memory. A memory that answers
// nothing fails here as one that believes everything does.
//
// The result depends on the seeds and the memory alone. Everything counted is a
// whole number; it is the same bytes on every machine.
package measures
