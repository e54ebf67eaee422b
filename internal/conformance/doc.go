// Package conformance runs the official MCP conformance runner, a suite that
// nobody here wrote, against the gateway with go-sdk's everything-server behind
// it: both wires, once with the server in shadow mode (the wire alone) and once
// under a committed policy (the gate in the way). A third leg runs the server
// without the gateway: it says how much could pass.
//
// baseline/LEG.txt names the scenarios that do not pass yet. It may only
// shrink: a listed scenario that passes fails the run, and so does an unlisted
// one that fails.
//
// It needs the peers that `make peers` installs and runs as `make conformance`;
// without them the run is skipped, and only its own bookkeeping is tested.
package conformance
