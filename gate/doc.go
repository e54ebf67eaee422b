// Package gate decides whether a tool call may happen. It is pure: policy,
// catalogue, session and call in, decision out; no clock, no I/O, no
// randomness, and no error result: a decision is not an error. The zero
// Decision denies.
//
// It trusts the operator's policy and the bytes the gateway recorded. It does
// not trust the model, the servers, their annotations or their descriptions.
package gate
