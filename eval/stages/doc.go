// Package stages measures the governed memory in stages: whether its rules do
// what they say (stage 1), whether they hold under stress (stage 2), and what
// they gain over memories without them (stage 3). It is package memory itself
// that is measured, on a fold of its own events; nothing here decides.
//
// It is offline: no network, no model, no clock. A scenario is a file of
// cases/, which a person can add to without touching Go. It says what is
// recorded, proposed and asked, at which hour; what must be believed then; and,
// apart from that, what is true, which no system is told. What is expected
// stands in the file and comes from the design of the memory, never from a run.
//
// Every system gets the same steps of the same scenarios ([Bundle]): the memory
// under both of its profiles, its seven ablations, and four memories without
// governance. A baseline is handed every claim ready made, so that it is
// measured by its rule and not by how well it reads.
//
// The result depends on the scenarios, the seeds, the policies and package
// memory. It is the same bytes on every machine.
//
// The package trusts the scenario files, which are part of the program. What is
// not measured, for want of a model or a clock, is named in the result
// ([NotMeasured]) and left out.
package stages
