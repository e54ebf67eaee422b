// Package invariants holds what Writ claims, as a table in table.yaml: each
// invariant with its statement, the functions that enforce it, the tests that
// hold it and, for what the seeds demand, evidence anybody can make again: a
// command of writ and a field of what it prints.
//
// INVARIANTS.md is made of the table. Show runs the commands and says of each
// field whether it is what the table says. Nothing here decides whether an
// invariant holds by any other means, and what a command prints is not
// believed beyond its fields: a field that is not there and output that is not
// strict JSON are evidence that does not hold. Where a command ends with another
// exit code than the table's, the whole does not hold.
//
// The package trusts the table, which is part of the program, and runs no
// process itself: the caller says what running a command is.
package invariants
