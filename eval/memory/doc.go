// Package memory measures the governed memory offline: no network, no model, no
// clock. It is told what came in, an agent files what it makes of it, and somebody
// asks; what is true is known from how a story was made, never from asking a
// memory. The interface is [Memory], and product.go alone knows the product.
//
// Three things are measured, on data that are generated from a seed. Belief
// revision: values change within hours, days and months, in attributes that nobody
// declared, said by the user or by a tool, and with every fifth correction in
// another spelling; each change is followed by a read. An attacker: an agent that
// drives every tool and knows every rule searches for a sequence of calls after
// which a falsehood is established, a truth is not, or words are told as
// established for which nobody vouches; beside it, every way to put a sentence together
// in which the user says I and tells of something else. Recall: conversations are asked questions
// whose evidence is known, alone and with claims beside them. It is our own data,
// and a figure on it is no figure on anybody's benchmark; a file of LoCoMo, which
// is no part of this repository, is asked where a person has it.
//
// Beside the product stand rules that other memories come down to: emulations of a
// decision rule, a few lines each, and no runs of anybody's product; every row says
// so. Those of the design that the memory grew out of are in package origin.
//
// A memory that answers nothing fails here as one that believes everything does.
// The result depends on the seeds and the memory: it is the same bytes on every
// machine.
package memory
