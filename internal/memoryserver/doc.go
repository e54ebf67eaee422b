// Package memoryserver is the governed memory as the server within the gateway:
// it keeps the log of a namespace, holds the state it folds to, and answers the
// nine proposal tools and the read tools.
//
// What is believed is decided by package memory alone. This package gives it
// what the channel knows of a call (who, in which session, when, and what Writ
// itself saw there), writes the event of each decision before the outcome is
// told to anybody, and turns outcomes into results of tools. A namespace is one
// sequence of records in the one log, so appends are serialised by the store's
// head, whoever makes them.
//
// It trusts the gateway that calls it and the store, and nothing a model wrote, nor
// what an endpoint says is near ([Nearness]).
package memoryserver
